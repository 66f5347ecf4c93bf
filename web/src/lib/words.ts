// A command line as its words.

/** Splits a command line as a shell would, without one: quotes and backslashes, nothing else. */
export function words(line: string): string[] {
  const found: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let at = 0; at < line.length; at++) {
    const mark = line[at]!;
    if (quote) {
      if (mark === quote) quote = '';
      else if (mark === '\\' && quote === '"' && at + 1 < line.length) word = (word ?? '') + line[++at];
      else word = (word ?? '') + mark;
    } else if (mark === '"' || mark === "'") {
      quote = mark;
      word ??= '';
    } else if (mark === '\\' && at + 1 < line.length) word = (word ?? '') + line[++at];
    else if (/\s/.test(mark)) {
      if (word !== undefined) found.push(word);
      word = undefined;
    } else word = (word ?? '') + mark;
  }
  if (word !== undefined) found.push(word);
  return found;
}
