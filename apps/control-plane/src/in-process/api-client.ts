import type { ApiObject } from '../objects/api-object.js';

export interface Answer<T = ApiObject> {
  readonly code: number;
  readonly body: T;
  readonly headers: Headers;
}

export interface WatchFrame {
  readonly type: string;
  readonly object: ApiObject & { readonly code?: number };
}

/** A plain client of the API, as curl would be. */
export class ApiClient {
  constructor(private readonly http: string) {}

  async call<T = ApiObject>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(`http://${this.http}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'Content-Type': type }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return { code: response.status, body: (await response.json()) as T, headers: response.headers };
  }

  /** Frames in order until `signal` aborts or the server ends the stream. */
  async *watch(path: string, signal: AbortSignal): AsyncGenerator<WatchFrame> {
    const response = await fetch(`http://${this.http}${path}`, { signal });
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    const decoder = new TextDecoder();
    let text = '';
    try {
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        const lines = text.split('\n');
        text = lines.pop() ?? '';
        for (const line of lines) yield JSON.parse(line) as WatchFrame;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

export const POLICIES_PATH = '/apis/bulwark.dev/v1/namespaces/shop/resiliencepolicies';

/** A small valid policy of namespace "shop". */
export function policy(name: string, spec: object = {}, metadata: object = {}): object {
  return {
    apiVersion: 'bulwark.dev/v1',
    kind: 'ResiliencePolicy',
    metadata: { name, ...metadata },
    spec: { target: { service: 'payments' }, timeout: { total: '2s' }, ...spec },
  };
}
