import assert from 'node:assert/strict';
import { test } from 'node:test';

// What of a browser the module touches when it is loaded.
Object.assign(globalThis, { document: { addEventListener() {}, hidden: false }, location: { hash: '', pathname: '/' }, addEventListener() {}, localStorage: {} });
const { changes, gaps, take, waiting, listen } = await import('../../src/lib/live');

test('an event counts once, a gap asks for everything again', () => {
  let heard = 0;
  listen('inbox', () => heard++);
  take('hello', { seq: 5, boot: 'a' });
  take('inbox', { seq: 6, boot: 'a', waiting: 2 });
  assert.deepEqual([changes.inbox.value, gaps.value, waiting.value, heard], [1, 0, 2, 1]);
  take('inbox', { seq: 6, boot: 'a', waiting: 2 });
  assert.equal(heard, 1, 'the same event again');
  take('ping', { seq: 6, boot: 'a' });
  take('tools', { seq: 7, boot: 'a' });
  assert.equal(gaps.value, 0);
  take('tools', { seq: 9, boot: 'a' });
  assert.equal(gaps.value, 1, 'one is missing');
  take('hello', { seq: 12, boot: 'a' });
  assert.equal(gaps.value, 2, 'more happened while there was no stream');
  take('audit', { seq: 1, boot: 'b' });
  assert.equal(gaps.value, 3, 'another run of the server');
  take('reset', { seq: 1, boot: 'b' });
  assert.equal(gaps.value, 4);
});
