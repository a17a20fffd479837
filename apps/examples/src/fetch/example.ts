import { connect } from '@bulwark/agent';
import { startDependency, type Say } from '../example.js';

/** What `bulwark apply -f` would send to a control plane. */
const policy = {
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: 'recommendations' },
  spec: {
    target: { service: 'recommendations' },
    timeout: { attempt: '500ms', total: '2s' },
    retry: { maxAttempts: 2, backoff: { base: '10ms', max: '20ms', jitter: 'full' } },
    circuitBreaker: {
      scope: 'Instance',
      trip: { consecutiveFailures: 3 },
      cooldown: { initial: '300ms', max: '300ms', factor: 1 },
      recovery: { steps: [] },
    },
    fallback: [{ lastGood: { maxAge: '60s' } }],
  },
};

export async function run(say: Say): Promise<void> {
  let requests = 0;
  let failing = 0;
  const dependency = await startDependency((request, response) => {
    requests += 1;
    if (failing > 0) {
      failing -= 1;
      response.writeHead(503).end();
    } else {
      response.end(
        `books, music (attempt ${(request.headers['bulwark-attempt'] as string | undefined) ?? 1})`,
      );
    }
  });
  const bulwark = await connect({ service: 'storefront', bootstrap: [policy] });
  const ask = async (what: string): Promise<void> => {
    const before = requests;
    // The policy names the service; here its name is not the URL's host name, so the call says it.
    const answer = await bulwark.fetch(`${dependency.url}/recs`, { bulwark: { service: 'recommendations' } });
    const degraded = answer.headers.get('bulwark-degraded');
    say(`${what}: ${answer.status} "${await answer.text()}" with ${requests - before} request(s)`);
    if (degraded !== null) say(`  Bulwark-Degraded: ${degraded}`);
  };

  await ask('all is well');
  failing = 1;
  await ask('one failure is retried');
  failing = 1_000;
  await ask('the dependency is down, the last good answer stands in');
  await ask('the third failure in a row opens the breaker');
  await ask('the breaker is open, the dependency is left alone');
  failing = 0;
  await new Promise((resolve) => setTimeout(resolve, 350));
  await ask('after the cooldown a probe succeeds');

  await bulwark.close();
  await dependency.close();
}
