import type { Problem } from '@bulwark/agent';
import type { ServerResponse } from 'node:http';

/** Answers with an RFC 9457 problem. Nothing is written over an answer that has begun. */
export function writeProblem(
  response: ServerResponse,
  problem: Problem,
  marks: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const body = Buffer.from(JSON.stringify(problem));
  response.writeHead(problem.status, {
    ...marks,
    'Content-Type': 'application/problem+json',
    'Content-Length': body.length,
  });
  response.end(body);
}
