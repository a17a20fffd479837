/** One line of a comparison. */
interface Edit {
  readonly mark: ' ' | '-' | '+';
  readonly line: string;
}

const CONTEXT_LINES = 3;
/** A comparison takes as many steps, and as many words of memory, as there are pairs of lines. */
const MOST_PAIRS = 16_000_000;

/** The hunks of `diff -u` between two texts; "" = they are the same. */
export function unifiedDiff(before: string, after: string): string {
  if (before === after) return '';
  const edits = compareLines(linesOf(before), linesOf(after));
  return hunks(edits)
    .map((range) => hunkText(edits, range))
    .join('');
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** By the longest common subsequence, after the common beginning and end are set aside. */
function compareLines(before: readonly string[], after: readonly string[]): readonly Edit[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const same = (line: string): Edit => ({ mark: ' ', line });
  return [
    ...before.slice(0, start).map(same),
    ...compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

function compareMiddle(before: readonly string[], after: readonly string[]): readonly Edit[] {
  if (before.length * after.length > MOST_PAIRS) {
    // Too much to find what is common: all of it is shown as replaced, which is true, too.
    const edits = (lines: readonly string[], mark: Edit['mark']) =>
      lines.map((line): Edit => ({ mark, line }));
    return [...edits(before, '-'), ...edits(after, '+')];
  }
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const edits: Edit[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [left, right] = [before[i], after[j]];
    if (left !== undefined && left === right) {
      edits.push({ mark: ' ', line: left });
      [i, j] = [i + 1, j + 1];
    } else if (left !== undefined && (right === undefined || at(i + 1, j) >= at(i, j + 1))) {
      edits.push({ mark: '-', line: left });
      i += 1;
    } else {
      edits.push({ mark: '+', line: right ?? '' });
      j += 1;
    }
  }
  return edits;
}

type Range = readonly [from: number, to: number];

/** Changes with their surroundings; those whose surroundings touch are one hunk. */
function hunks(edits: readonly Edit[]): readonly Range[] {
  const ranges: [number, number][] = [];
  edits.forEach(({ mark }, index) => {
    if (mark === ' ') return;
    const from = Math.max(0, index - CONTEXT_LINES);
    const to = Math.min(edits.length, index + CONTEXT_LINES + 1);
    const last = ranges.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = to;
    else ranges.push([from, to]);
  });
  return ranges;
}

function hunkText(edits: readonly Edit[], [from, to]: Range): string {
  const count = (some: readonly Edit[], without: Edit['mark']) =>
    some.filter(({ mark }) => mark !== without).length;
  const earlier = edits.slice(0, from);
  const shown = edits.slice(from, to);
  const place = (without: Edit['mark']) => {
    const length = count(shown, without);
    const first = count(earlier, without) + (length === 0 ? 0 : 1);
    return length === 1 ? String(first) : `${first},${length}`;
  };
  const head = `@@ -${place('+')} +${place('-')} @@\n`;
  return head + shown.map(({ mark, line }) => `${mark}${line}\n`).join('');
}
