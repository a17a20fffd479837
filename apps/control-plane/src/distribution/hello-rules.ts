import { PROTOCOL_LEVEL, type Hello } from '@bulwark/protocol';
import { status } from '@grpc/grpc-js';

/** Why a stream is not taken, as gRPC says it. */
export interface Refused {
  readonly code: status;
  readonly details: string;
}

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const SERVICE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;
const INSTANCE = /^[A-Za-z0-9]([-A-Za-z0-9_.:]{0,251}[A-Za-z0-9])?$/;
const INCARNATION = /^[-A-Za-z0-9_.]{1,64}$/;
const MAX_LABELS = 64;
const MAX_LABEL_LENGTH = 317;
const MAX_HELD = 20_000;
const MAX_VERSION = 128;

/** Everything that is wrong with a Hello in one answer; undefined = it is welcome. */
export function checkHello(hello: Hello): Refused | undefined {
  if (hello.protocol !== PROTOCOL_LEVEL) {
    const details = `this agent speaks protocol ${hello.protocol}, this server ${PROTOCOL_LEVEL}: upgrade the older one`;
    return { code: status.UNIMPLEMENTED, details };
  }
  const problems = [...nameProblems(hello), ...sizeProblems(hello)];
  return problems.length === 0 ? undefined : { code: status.INVALID_ARGUMENT, details: problems.join('; ') };
}

function nameProblems(hello: Hello): string[] {
  const problems: string[] = [];
  const check = (
    what: 'namespace' | 'service' | 'instance' | 'incarnation',
    pattern: RegExp,
    form: string,
  ): void => {
    const value = hello[what];
    if (value.length > 253 || !pattern.test(value)) {
      problems.push(`${what} ${JSON.stringify(value.slice(0, 80))} must be ${form}`);
    }
  };
  check('namespace', LABEL, 'lower-case letters, digits and "-", at most 63');
  check('service', SERVICE, 'a DNS name: lower-case letters, digits, "-" and "."');
  check('instance', INSTANCE, 'letters, digits, "-", "_", "." and ":", at most 253');
  check('incarnation', INCARNATION, 'letters, digits, "-", "_" and ".", at most 64');
  return problems;
}

function sizeProblems(hello: Hello): string[] {
  const problems: string[] = [];
  const labels = Object.entries(hello.labels);
  if (labels.length > MAX_LABELS) problems.push(`${labels.length} labels are more than ${MAX_LABELS}`);
  const long = labels.find(
    ([key, value]) => key === '' || key.length > MAX_LABEL_LENGTH || value.length > MAX_LABEL_LENGTH,
  );
  if (long !== undefined) {
    problems.push(
      `label ${JSON.stringify(long[0].slice(0, 80))}: key and value have at most ${MAX_LABEL_LENGTH} characters`,
    );
  }
  if (hello.resources.length > MAX_HELD)
    problems.push(`${hello.resources.length} held resources are more than ${MAX_HELD}`);
  if (hello.version.length > MAX_VERSION) problems.push(`version is longer than ${MAX_VERSION} characters`);
  return problems;
}
