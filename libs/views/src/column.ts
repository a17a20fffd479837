/** What is known of a column beside its cells. */
export interface Column<Item> {
  /** As people read it, in capitals: "CALLS/S". */
  readonly name: string;
  readonly description: string;
  /** 0 = always shown; 1 = with `-o wide`. */
  readonly priority: 0 | 1;
  /**
   * `number`: text that is aligned to the right. `live`: the same, and it changes all the time, so that a change of it
   * alone is no news. `remark`: plain text of that kind. `age`: the human span. Absent = plain text.
   */
  readonly shape?: 'name' | 'number' | 'live' | 'remark' | 'age';
  /** Characters that most cells stay within, for tables that grow while they are read. Absent = the name's. */
  readonly room?: number;
  /** One line of ASCII: tables are measured in bytes by kubectl. */
  readonly cell: (item: Item, nowUnixMs: number) => string;
}

/** Names and labels hold ASCII only; free text may not, and control characters would break the table. */
export function plain(text: string): string {
  return text.replace(/[^ -~]+/g, '?');
}
