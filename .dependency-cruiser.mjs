/** Which folder may import which. Everything points downward; a library is entered by its index only. */
const lib = (name) => `^libs/${name}/src/`;
const only = (from, allowed) => ({
  name: `${from.replaceAll('/', '-')}-imports`,
  comment: `${from} may import: ${allowed.join(', ') || 'no other library'}`,
  severity: 'error',
  from: { path: `^${from}/src/` },
  to: {
    path: '^(libs|apps)/',
    pathNot: [`^${from}/src/`, ...allowed.map(lib)].concat('^libs/testing/src/', '/node_modules/'),
  },
});

export default {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    { name: 'not-resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'library-by-its-index',
      severity: 'error',
      from: { path: '^(libs|apps|test)/([^/]+)/' },
      // The SDK's adapters for frameworks are entries of their own: who does not use one does not load it.
      to: {
        path: '^libs/([^/]+)/src/(?!index\\.ts$)',
        pathNot: ['^libs/$2/src/', '^libs/agent/src/(undici|nest|grpc)/index\\.ts$'],
      },
    },
    {
      name: 'libraries-never-import-apps',
      severity: 'error',
      from: { path: '^libs/' },
      to: { path: '^apps/' },
    },
    {
      name: 'testing-is-for-tests',
      severity: 'error',
      from: { path: '^(libs|apps)/', pathNot: ['\\.test\\.ts$', '\\.conformance\\.ts$', '^libs/testing/'] },
      to: { path: '^libs/testing/' },
    },
    {
      name: 'pure-libraries-do-no-io',
      severity: 'error',
      from: { path: '^libs/(policy|resilience|fleet|views)/src/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'nest-lives-in-the-control-plane',
      severity: 'error',
      from: {
        path: '^(libs|apps)/',
        pathNot: ['^apps/control-plane/', '^libs/agent/src/nest/', '^apps/examples/src/nest/'],
      },
      to: { path: '^node_modules/@nestjs/' },
    },
    {
      name: 'etcd-lives-in-the-store',
      severity: 'error',
      from: { path: '^(libs|apps)/', pathNot: '^libs/store/' },
      to: { path: '^node_modules/etcd3/' },
    },
    only('libs/resilience', []),
    only('libs/policy', ['resilience']),
    only('libs/fleet', ['resilience']),
    only('libs/store', []),
    only('libs/protocol', []),
    only('libs/telemetry', []),
    only('libs/views', ['policy', 'fleet', 'resilience']),
    only('libs/agent', ['policy', 'resilience', 'protocol']),
    only('libs/testing', ['resilience']),
    only('apps/control-plane', ['policy', 'store', 'protocol', 'fleet', 'resilience', 'views', 'telemetry']),
    only('apps/examples', ['agent']),
    only('apps/agent', ['agent', 'policy', 'resilience', 'telemetry']),
    {
      // The one command starts the server and the sidecar in its own process.
      ...only('apps/cli', ['policy', 'views', 'agent', 'telemetry']),
      to: {
        path: '^(libs|apps)/',
        pathNot: [
          '^apps/(cli|control-plane|agent)/src/',
          '/node_modules/',
          ...['policy', 'views', 'agent', 'telemetry', 'testing'].map(lib),
        ],
      },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: ['/dist/', '/generated/'] },
    tsPreCompilationDeps: true,
    combinedDependencies: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['source', 'import', 'require', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.mjs'],
    },
  },
};
