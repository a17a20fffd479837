import { StringDecoder } from 'node:string_decoder';

/** Everything a command touches of the process it runs in. */
export interface Io {
  /** Data for people and programs; dropped once the reader has gone. */
  readonly out: (text: string) => void;
  /** Hints, progress, warnings. */
  readonly err: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether a person reads `out`, and can be asked on stdin. */
  readonly terminal: { readonly out: boolean; readonly in: boolean };
  /** Aborted by Ctrl-C. */
  readonly interrupted: AbortSignal;
  /** Aborted when nobody reads `out` any more. A watch ends then; writes go on to their end. */
  readonly outputClosed: AbortSignal;
  /** Unix milliseconds, for ages. */
  readonly now: () => number;
  readonly stdin: () => AsyncIterable<Uint8Array>;
  /** A question to the person at the terminal; true = yes. Only where `terminal.in`. @throws Interrupted */
  readonly ask: (question: string) => Promise<boolean>;
}

/** The real process. `dispose` takes the signal handlers away. */
export function processIo(): Io & { dispose(): void } {
  const interruption = new AbortController();
  const closing = new AbortController();
  const onSigint = () => {
    // Asked twice: whatever still runs is given up.
    if (interruption.signal.aborted) process.exit(130);
    interruption.abort();
  };
  const onError = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') throw error;
    closing.abort();
  };
  process.on('SIGINT', onSigint);
  process.stdout.on('error', onError);
  process.stderr.on('error', onError);
  return {
    out: (text) => {
      if (!closing.signal.aborted) process.stdout.write(text);
    },
    err: (text) => void process.stderr.write(text),
    env: process.env,
    terminal: { out: process.stdout.isTTY, in: process.stdin.isTTY },
    interrupted: interruption.signal,
    outputClosed: closing.signal,
    now: Date.now,
    stdin: () => process.stdin,
    ask: async (question) => (await import('./ask.js')).ask(question),
    dispose: () => void process.off('SIGINT', onSigint),
  };
}

/** All of stdin as text. Stops reading above `maxBytes`; what was read by then is given. */
export async function readAll(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const decoder = new StringDecoder('utf8');
  let text = '';
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.byteLength;
    text += decoder.write(Buffer.from(chunk));
    if (bytes > maxBytes) break;
  }
  return text + decoder.end();
}
