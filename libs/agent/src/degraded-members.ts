/** Levels of one answer; a deeper story is cut. */
const MAX_MEMBERS = 16;
/** What one `Bulwark-Degraded` may take, in characters: header space is shared with everything else. */
const MAX_CHARS = 4_096;
/** What is looked at of one value. */
const MAX_READ_CHARS = 4 * MAX_CHARS;

/** The members of several `Bulwark-Degraded` lists (RFC 8941), each once, in the order they were first told. Bounded. */
export class DegradedMembers {
  readonly #members = new Set<string>();
  #chars = 0;

  /** Adds the members of one header value; text that is no list of printable ASCII is left out. */
  add(list: string | null | undefined): void {
    if (!list) return;
    for (const member of splitMembers(list)) {
      if (this.#members.size >= MAX_MEMBERS || this.#chars + member.length > MAX_CHARS) return;
      if (this.#members.has(member) || !/^[\x20-\x7e]+$/.test(member)) continue;
      this.#members.add(member);
      this.#chars += member.length + 2;
    }
  }

  /** The header's value; undefined = nothing was degraded. */
  get list(): string | undefined {
    return this.#members.size === 0 ? undefined : [...this.#members].join(', ');
  }
}

/** One header value of several, in the order given; undefined = all were empty. */
export function joinMembers(...lists: readonly (string | null | undefined)[]): string | undefined {
  const members = new DegradedMembers();
  for (const list of lists) members.add(list);
  return members.list;
}

/** A comma within a quoted string separates nothing. */
function splitMembers(list: string): string[] {
  const members: string[] = [];
  const end = Math.min(list.length, MAX_READ_CHARS);
  let from = 0;
  let quoted = false;
  for (let at = 0; at < end; at += 1) {
    const char = list[at];
    if (quoted && char === '\\') at += 1;
    else if (char === '"') quoted = !quoted;
    else if (char === ',' && !quoted) {
      members.push(list.slice(from, at));
      from = at + 1;
    }
  }
  // A string that never ends is no member, and would swallow those that are joined to it.
  if (!quoted) members.push(list.slice(from, end));
  return members.map((member) => member.trim()).filter((member) => member !== '');
}
