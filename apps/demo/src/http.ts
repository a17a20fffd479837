const TIMEOUT_MS = 10_000;

/** A JSON answer of one of the demo's own servers; anything but 2xx is an error that says what was asked. */
export async function requestJson<T>(url: string, method: 'GET' | 'POST' = 'GET'): Promise<T> {
  const response = await fetch(url, { method, signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}
