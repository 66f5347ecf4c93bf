// Text of others, made visible. The same rules as `model::text`: what a person cannot see on
// a line (controls, bidirectional marks, invisible letters, marks piled on one letter) is shown
// as its number. Attack: a description or an argument that reads other than it is.

/** Marks on one letter that are shown as they are; no alphabet needs more. */
const MARKS_MAX = 3;

const HIDDEN =
  /[\p{Cc}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\u{13430}-\u{1345f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;
const MARK = /\p{M}/u;
const PILED = new RegExp(`\\p{M}{${MARKS_MAX + 1}}`, 'u');
// Line ends and tabs are what text of many lines is made of.
const ANY_HIDDEN = new RegExp(`(?![\n\t])${HIDDEN.source}`, 'u');

export interface Run {
  text: string;
  /** Whether it stands for something that cannot be seen. */
  isEscape: boolean;
}

export type Lines = 'one' | 'many';

/** The text as runs of what is shown as it is and of visible escapes. */
export function runs(text: string, lines: Lines): Run[] {
  const found: Run[] = [];
  let plain = '';
  let marks = 0;
  const escape = (shown: string) => {
    if (plain) found.push({ text: plain, isEscape: false });
    plain = '';
    const last = found.at(-1);
    if (last?.isEscape) last.text += shown;
    else found.push({ text: shown, isEscape: true });
  };
  for (const character of text) {
    marks = MARK.test(character) ? marks + 1 : 0;
    if (character === '\n') {
      if (lines === 'many') plain += character;
      else escape('\\n');
    } else if (character === '\t') plain += lines === 'many' ? '\t' : ' ';
    else if (character === '\r') escape('\\r');
    else if (HIDDEN.test(character) || marks > MARKS_MAX) escape(`\\u{${character.codePointAt(0)!.toString(16)}}`);
    else plain += character;
  }
  if (plain) found.push({ text: plain, isEscape: false });
  return found;
}

/** The same as one string, for attributes and titles. */
export function visible(text: string, lines: Lines = 'one'): string {
  return runs(text, lines)
    .map((run) => run.text)
    .join('');
}

/** Whether anything in it would be escaped. */
export function hides(text: string): boolean {
  return ANY_HIDDEN.test(text) || PILED.test(text);
}

/** `1 host`, `2 hosts`. */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? noun : plural}`;
}
