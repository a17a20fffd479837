export { playTour } from './tour.js';
export { runDemo } from './demo.js';
