import { connect } from '@bulwark/agent';
import { undiciInterceptor } from '@bulwark/agent/undici';
import { Agent, request } from 'undici';
import { startDependency, type Say } from '../example.js';

const policy = {
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: 'pricing' },
  spec: {
    target: { service: 'pricing' },
    timeout: { attempt: '200ms', total: '1s' },
    retry: { maxAttempts: 2, backoff: { base: '10ms', max: '20ms', jitter: 'full' } },
    bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWait: '1s' },
  },
};

export async function run(say: Say): Promise<void> {
  let requests = 0;
  const dependency = await startDependency((incoming, response) => {
    requests += 1;
    switch (incoming.url) {
      case '/shaky':
        return void response.writeHead(requests % 2 === 0 ? 503 : 200).end('12.50');
      case '/breaks':
        response.write('12.');
        return void setTimeout(() => response.destroy(), 20);
      case '/hangs':
        return;
      default:
        return void response.end('12.50');
    }
  });
  const bulwark = await connect({ service: 'storefront', bootstrap: [policy] });
  const agent = new Agent();
  // Everything that goes through this dispatcher is guarded: request, stream, pipeline, and fetch with `dispatcher`.
  const dispatcher = agent.compose(undiciInterceptor(bulwark, { guard: () => ({ service: 'pricing' }) }));
  const ask = async (path: string): Promise<string> => {
    const before = requests;
    const answer = await request(`${dependency.url}${path}`, { dispatcher });
    const text = await answer.body.text().catch((error: Error) => `broke off (${error.message})`);
    const rejected = answer.headers['bulwark-rejected'] as string | undefined;
    const said = rejected === undefined ? text : `Bulwark-Rejected: ${rejected}`;
    return `${answer.statusCode} "${answer.statusCode === 504 ? 'no answer in time' : said}" with ${requests - before} request(s)`;
  };

  say(`an answer: ${await ask('/price')}`);
  say(`a 503 is followed by another attempt: ${await ask('/shaky')}`);
  say(`a body that breaks off is a failure, but is not repeated: ${await ask('/breaks')}`);
  const hanging = ask('/hangs');
  say(`the one place is taken, the next call is refused at once: ${await ask('/price')}`);
  say(`both attempts at a dependency that hangs have ended: ${await hanging}`);
  const [state] = bulwark.state().policies;
  say(`in flight now: ${state?.totals?.inFlight}`);

  await bulwark.close();
  await agent.close();
  await dependency.close();
}
