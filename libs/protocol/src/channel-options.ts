import type { ChannelOptions } from '@grpc/grpc-js';

/** The level of the agent's protocol that this code speaks; see `Hello.protocol`. */
export const PROTOCOL_LEVEL = 1;

/** A snapshot of 5,000 policies is larger than gRPC's default limit of 4 MiB. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/**
 * For clients of long streams. A connection whose other side vanished without a word is noticed within
 * keepalive time + timeout: 4.5 s. HTTP_PROXY is ignored: it often names the sidecar itself. Each client has its
 * own subchannels, since a shared pool would make one client wait for another's back-off.
 */
export const CLIENT_CHANNEL_OPTIONS = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
  'grpc.keepalive_time_ms': 2_500,
  'grpc.keepalive_timeout_ms': 2_000,
  'grpc.keepalive_permit_without_calls': 0,
  'grpc.enable_retries': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.service_config_disable_resolution': 1,
} as const satisfies ChannelOptions;
