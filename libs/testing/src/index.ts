export { eventually, type EventuallyOptions } from './eventually.js';
export { freePort } from './free-port.js';
export { temporaryDirectory, type TemporaryDirectory } from './temporary-directory.js';
export { startProcess, type Exit, type ProcessOptions, type RunningProcess } from './process.js';
export { startTcpProxy, type TcpProxy, type TcpProxyOptions } from './tcp-proxy.js';
export { serverBinary } from './server-binaries.js';
export { startEtcd, type Etcd, type EtcdOptions } from './etcd.js';
export { startEtcdCluster, type EtcdCluster, type EtcdMember } from './etcd-cluster.js';
export { FakeHost, type FakeHostOptions } from './fake-host.js';
export {
  type GuardCall,
  GuardWorld,
  type GuardWorldAnswer,
  type GuardWorldRun,
  WORLD_KEYS,
} from './guard-world.js';
export { agree, checkModel, checkModelAsync, commandsOf } from './model-check.js';
export { seededRandom } from './seeded-random.js';
export {
  type Behaviour,
  breakerSettings,
  FAIL,
  FakeDependency,
  guardSettings,
  HANG,
  OK,
  type Reply,
  replyAdapter,
  retrySettings,
  TransportError,
} from './engine-fixture.js';
