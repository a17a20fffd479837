/** What one answer's `Bulwark-Degraded` may take, in characters; further members are left out. */
const MAX_CHARS = 4_096;

/** The members of an RFC 8941 list, as they are written: a comma within a string separates nothing. */
export function splitMembers(list: string): string[] {
  const members: string[] = [];
  let from = 0;
  let quoted = false;
  for (let at = 0; at < list.length; at += 1) {
    const char = list[at];
    if (quoted && char === '\\') at += 1;
    else if (char === '"') quoted = !quoted;
    else if (char === ',' && !quoted) {
      members.push(list.slice(from, at));
      from = at + 1;
    }
  }
  members.push(list.slice(from));
  return members.map((member) => member.trim()).filter((member) => member !== '');
}

/** The members of several answers, each once, in the order they were first told. */
export class DegradedMembers {
  readonly #members = new Set<string>();
  #chars = 0;

  /** Adds the members of a `Bulwark-Degraded`. */
  add(list: string | undefined): void {
    if (list === undefined) return;
    for (const member of splitMembers(list)) {
      if (this.#members.has(member) || this.#chars + member.length > MAX_CHARS) continue;
      this.#members.add(member);
      this.#chars += member.length + 2;
    }
  }

  /** The header's value; undefined = nothing was degraded. */
  get list(): string | undefined {
    return this.#members.size === 0 ? undefined : [...this.#members].join(', ');
  }
}
