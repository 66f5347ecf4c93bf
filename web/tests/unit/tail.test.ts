import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ON_TOP_MAX, Tail } from '../../src/lib/tail.ts';

const row = (id: string, status = 'open') => ({ id, status });
const all = (tail: Tail<{ id: string; status: string }>) => Array.from({ length: tail.count }, (_, index) => `${tail.at(index).id} ${tail.at(index).status}`);

test('new rows come on top, older ones below, and a row that ends stays in its place', () => {
  const tail = new Tail([row('c'), row('b', 'done')]);
  tail.add(row('d'));
  tail.add(row('e'));
  tail.append([row('b', 'done'), row('a', 'done')]);
  assert.deepEqual(all(tail), ['e open', 'd open', 'c open', 'b done', 'a done']);
  tail.add(row('c', 'done'));
  tail.add(row('d', 'refused'));
  assert.deepEqual(all(tail), ['e open', 'd refused', 'c done', 'b done', 'a done']);
  assert.equal(tail.onTop, 2);
});

test('the newest rows, asked for again, join what is here or begin again', () => {
  const tail = new Tail([row('c'), row('b')]);
  tail.append([row('a')]);
  assert.equal(tail.renew([row('e'), row('d'), row('c', 'done')]), true);
  assert.deepEqual(all(tail), ['e open', 'd open', 'c done', 'b open', 'a open']);
  assert.equal(tail.renew([row('z'), row('y')]), false);
  assert.equal(tail.count, 5);
});

test('what is on top is bounded', () => {
  const tail = new Tail<{ id: string; status: string }>([]);
  for (let index = 0; index < ON_TOP_MAX; index++) tail.add(row(`r${index}`));
  assert.equal(tail.isFull, true);
  assert.equal(tail.at(0).id, `r${ON_TOP_MAX - 1}`);
});
