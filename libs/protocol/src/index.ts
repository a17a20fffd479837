export * from './generated/bulwark/v1/agent.js';
export * from './generated/bulwark/v1/fleet.js';
export * from './generated/bulwark/v1/peer.js';
export {
  compareSnapshotVersions,
  formatSnapshotVersion,
  sameResource,
  resourceId,
} from './snapshot-version.js';
export { agentId, parseAgentId } from './agent-id.js';
export { CLIENT_CHANNEL_OPTIONS, MAX_MESSAGE_BYTES, PROTOCOL_LEVEL } from './channel-options.js';
