export { runSidecar, type SidecarIo } from './run-sidecar.js';
