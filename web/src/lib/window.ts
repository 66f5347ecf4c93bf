// Which rows of a long list are in the page: whole blocks around what is on the screen, so that most steps of
// scrolling change nothing; and always the ends and the rows that are held.

export type Range = readonly [number, number];

const BLOCK = 8;

/** The rows from the first to before the second that are near a screen of `screen` pixels, in a list whose top is at `top`. */
export function place(top: number, screen: number, height: number, count: number): Range {
  const from = Math.floor(Math.max(0, -top) / height);
  const to = Math.ceil(Math.max(0, screen - top) / height);
  const first = Math.max(0, (Math.floor(from / BLOCK) - 1) * BLOCK);
  const last = (Math.ceil(to / BLOCK) + 1) * BLOCK;
  return [Math.min(first, count), Math.min(last, count)];
}

export function sameRange(one: Range, two: Range): boolean {
  return one[0] === two[0] && one[1] === two[1];
}

/** Every row to show, in order: the range, both ends, and each held row with its neighbours. */
export function shown(range: Range, count: number, held: (number | undefined)[]): number[] {
  const all = new Set<number>([0, count - 1]);
  for (const index of held) if (index !== undefined) for (const near of [index - 1, index, index + 1]) all.add(near);
  for (let index = range[0]; index < range[1]; index++) all.add(index);
  return [...all].filter((index) => index >= 0 && index < count).sort((one, two) => one - two);
}
