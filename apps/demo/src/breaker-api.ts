import { requestJson } from './http.js';

/** The part of the API's Breaker that the demo reads. */
export interface Breaker {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly policy: string; readonly key: string };
  readonly status: {
    readonly state: string;
    readonly epoch: number;
    readonly share?: string;
    readonly message?: string;
    readonly transitions: readonly {
      readonly time: string;
      readonly from: string;
      readonly to: string;
      readonly reason: string;
      readonly message: string;
      readonly epoch: number;
    }[];
  };
}

export async function breakersOf(http: string, namespace: string): Promise<Breaker[]> {
  const url = `http://${http}/apis/bulwark.dev/v1/namespaces/${namespace}/breakers`;
  return (await requestJson<{ items: Breaker[] }>(url)).items;
}

export async function breakerOfPolicy(
  http: string,
  namespace: string,
  policy: string,
): Promise<Breaker | undefined> {
  return (await breakersOf(http, namespace)).find((one) => one.spec.policy === policy);
}
