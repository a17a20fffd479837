import type { Io } from '../io.js';

export type ColourMode = 'auto' | 'always' | 'never';
export type Tint = 'bad' | 'warn' | 'good' | 'dim' | 'bold' | 'added' | 'removed';

const CODES: { readonly [T in Tint]: string } = {
  bad: '31',
  removed: '31',
  warn: '33',
  good: '32',
  added: '32',
  dim: '2',
  bold: '1',
};

/** Words that tell how things are, wherever they stand. Colour only repeats what the word says. */
const WORDS: Readonly<Record<string, Tint>> = {
  Open: 'bad',
  ForcedOpen: 'bad',
  Refused: 'bad',
  Lost: 'bad',
  HalfOpen: 'warn',
  Recovering: 'warn',
  Partial: 'warn',
  ForcedClosed: 'warn',
  Pending: 'warn',
  Closed: 'good',
  Synced: 'good',
};

export type Paint = (text: string, tint: Tint | undefined) => string;

export function tintOf(word: string): Tint | undefined {
  return WORDS[word];
}

export function paintFor(mode: ColourMode, io: Io): Paint {
  const { NO_COLOR: noColour, TERM: term } = io.env;
  const wanted = io.terminal.out && (noColour === undefined || noColour === '') && term !== 'dumb';
  const on = mode === 'always' || (mode === 'auto' && wanted);
  return (text, tint) => (on && tint !== undefined ? `\u001b[${CODES[tint]}m${text}\u001b[0m` : text);
}
