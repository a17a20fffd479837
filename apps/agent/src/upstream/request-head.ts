/** What a request to an upstream consists of, as text in latin1: what the caller wrote, byte for byte. */

const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NO_TARGET = /[^\x21-\x7e\x80-\xff]/;
/** Line ends above all: one in a value would begin another field. */
const NO_LINE = /[^\t\x20-\x7e\x80-\xff]/;

/** One field line, its end included. Throws TypeError for what would not be one. */
export function fieldLine(name: string, value: string): string {
  const line = `${name}: ${value}`;
  if (NO_LINE.test(line)) throw new TypeError(`the value of ${JSON.stringify(name)} cannot be sent`);
  return `${line}\r\n`;
}

/** `fields` are whole field lines. Throws TypeError for a method or target that cannot be written. */
export function requestHead(method: string, target: string, fields: string): string {
  if (!METHOD.test(method)) throw new TypeError(`the method ${JSON.stringify(method)} cannot be sent`);
  if (target === '' || NO_TARGET.test(target)) {
    throw new TypeError(`the target ${JSON.stringify(target)} cannot be sent`);
  }
  return `${method} ${target} HTTP/1.1\r\n${fields}\r\n`;
}
