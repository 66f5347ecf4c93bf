import assert from 'node:assert/strict';
import { test } from 'node:test';
import { count, hides, runs, visible } from '../../src/lib/text';

test('what cannot be seen is shown as its number', () => {
  assert.equal(visible('a\u202eb'), 'a\\u{202e}b');
  assert.equal(visible('pay\u200bpal'), 'pay\\u{200b}pal');
  assert.equal(visible('\u0000\u001b[31m'), '\\u{0}\\u{1b}[31m');
  assert.equal(visible('tag\u{e0041}'), 'tag\\u{e0041}');
  assert.equal(visible('half \ud800 of a pair'), 'half \\u{d800} of a pair');
});

test('a line break ends no line that is one', () => {
  assert.equal(visible('a\nb\tc\r'), 'a\\nb c\\r');
  assert.equal(visible('a\nb', 'many'), 'a\nb');
});

test('marks piled on one letter are counted out', () => {
  const piled = `e${'\u0301'.repeat(5)}`;
  assert.equal(visible(piled), `e${'\u0301'.repeat(3)}\\u{301}\\u{301}`);
  assert.equal(visible('서울 e\u0301 한'), '서울 e\u0301 한');
});

test('escapes are runs of their own, and plain text is one', () => {
  assert.deepEqual(runs('x\u202e\u202dy', 'one'), [
    { text: 'x', isEscape: false },
    { text: '\\u{202e}\\u{202d}', isEscape: true },
    { text: 'y', isEscape: false },
  ]);
  assert.equal(hides('plain\ntext'), false);
  assert.equal(hides('\ufeffplain'), true);
});

test('one and many', () => {
  assert.equal(count(1, 'call'), '1 call');
  assert.equal(count(2310, 'call'), '2,310 calls');
});
