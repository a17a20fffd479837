export { CallerFleet, type StateChange } from './caller-fleet.js';
export { Dependency, type Arrival } from './dependency.js';
export { playTour } from './tour.js';
export { runDemo } from './demo.js';
