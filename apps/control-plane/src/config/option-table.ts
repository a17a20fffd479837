/** Every option of the server: `--flag VALUE`, `BULWARK_FLAG`, and `flag:` in the YAML file. */
export interface Option {
  readonly flag: string;
  readonly kind: 'text' | 'switch' | 'list';
  readonly placeholder?: string;
  readonly help: string;
}

export const OPTIONS = [
  {
    flag: 'store',
    kind: 'text',
    placeholder: 'URL',
    help: 'file:DIR or etcd:URL[,URL…] (default file:.bulwark)',
  },
  {
    flag: 'http',
    kind: 'text',
    placeholder: 'HOST:PORT',
    help: 'address of the API (default 127.0.0.1:9443)',
  },
  {
    flag: 'grpc',
    kind: 'text',
    placeholder: 'HOST:PORT',
    help: 'address for agents and peers (default 127.0.0.1:9444)',
  },
  {
    flag: 'advertise-grpc',
    kind: 'text',
    placeholder: 'HOST:PORT',
    help: 'where other replicas reach --grpc (default: the same; needed for 0.0.0.0)',
  },
  {
    flag: 'id',
    kind: 'text',
    placeholder: 'NAME',
    help: 'name of this replica (default: host name and random digits)',
  },
  {
    flag: 'peer',
    kind: 'list',
    placeholder: 'HOST:PORT',
    help: 'another replica; only if discovery through the store does not serve',
  },
  {
    flag: 'default-rollout',
    kind: 'text',
    placeholder: 'STRATEGY',
    help: 'immediate, or a strategy (default: immediate on loopback, else standard)',
  },
  {
    flag: 'insecure-listen',
    kind: 'switch',
    help: 'listen beyond loopback in plain text: anyone who reaches the port may change everything',
  },
  {
    flag: 'max-agents',
    kind: 'text',
    placeholder: 'N',
    help: 'agent streams this replica takes (default 10000)',
  },
  {
    flag: 'max-watches',
    kind: 'text',
    placeholder: 'N',
    help: 'watches over HTTP this replica serves at once (default 1000)',
  },
  {
    flag: 'log-level',
    kind: 'text',
    placeholder: 'LEVEL',
    help: 'debug, info, warn or error (default info)',
  },
  {
    flag: 'log-format',
    kind: 'text',
    placeholder: 'FORMAT',
    help: 'json, text or auto (default auto: text at a terminal)',
  },
  { flag: 'config', kind: 'text', placeholder: 'FILE', help: 'YAML file with any of these options' },
] as const satisfies readonly Option[];

export type Flag = (typeof OPTIONS)[number]['flag'];

export function usage(): string {
  const rows = OPTIONS.map((option: Option) => {
    const left = `  --${option.flag}${option.placeholder ? ` ${option.placeholder}` : ''}`;
    return `${left.padEnd(30)} ${option.help}`;
  });
  return [
    'Usage: bulwark server [options]',
    '',
    'Runs one replica of the control plane.',
    '',
    ...rows,
    '',
    'Every option may also be given as BULWARK_… (BULWARK_HTTP, BULWARK_DEFAULT_ROLLOUT, …; lists with commas)',
    'and in the file of --config. A flag wins over the environment, the environment over the file.',
    '',
  ].join('\n');
}
