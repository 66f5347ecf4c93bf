import assert from 'node:assert/strict';
import { test } from 'node:test';
import { place, shown } from '../../src/lib/window.ts';

test('rows on the screen are always among those in the page, and these are few', () => {
  const [height, screen, count] = [56, 800, 100_000];
  for (let top = 200; top > -count * height; top -= 3_777) {
    const [first, last] = place(top, screen, height, count);
    for (let row = 0; row < 30; row++) {
      const index = Math.floor(-top / height) + row;
      const isSeen = index >= 0 && index < count && top + (index + 1) * height > 0 && top + index * height < screen;
      if (isSeen) assert.ok(first <= index && index < last, `${index} at ${top}: ${first} to ${last}`);
    }
    assert.ok(last - first <= 48, `${last - first} rows`);
  }
});

test('a short list is whole, an empty one is empty', () => {
  assert.deepEqual(place(100, 800, 56, 3), [0, 3]);
  assert.deepEqual(shown([0, 3], 3, []), [0, 1, 2]);
  assert.deepEqual(shown([0, 0], 0, [undefined]), []);
});

test('ends and held rows stay, with their neighbours, in order', () => {
  assert.deepEqual(shown([40, 42], 100, [7, undefined, 99]), [0, 6, 7, 8, 40, 41, 98, 99]);
});
