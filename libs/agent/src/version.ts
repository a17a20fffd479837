/** Of this SDK, told to the control plane for people to see. */
export const VERSION = '0.1.0';
