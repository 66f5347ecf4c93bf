import assert from 'node:assert/strict';
import { test } from 'node:test';
import { find, JsonError, parse, place, set } from '../../src/lib/json';

const DOCUMENT = `{
  "name": "a",  "unknown": {"kept":  1},
  "params": [
    { "name": "x", "type": "STRING" },
    { "name": "y" }
  ],
  "code": "return 1;"
}
`;

test('a change of one value leaves every other byte', () => {
  const changed = set(DOCUMENT, ['code'], 'return "2\\n";');
  assert.equal(changed, DOCUMENT.replace('"return 1;"', JSON.stringify('return "2\\n";')));
  assert.equal(set(DOCUMENT, ['params', 1, 'name'], 'z'), DOCUMENT.replace('"y"', '"z"'));
});

test('a value is added in the manner of its neighbours', () => {
  assert.equal(set(DOCUMENT, ['draft'], true), DOCUMENT.replace('"return 1;"\n', '"return 1;",\n  "draft": true\n'));
  assert.equal(set(DOCUMENT, ['params', 1, 'type'], 'STRING'), DOCUMENT.replace('{ "name": "y" }', '{ "name": "y", "type": "STRING" }'));
  const nested = set(DOCUMENT, ['humanInTheLoop', 'mode'], 'REQUIRED');
  assert.deepEqual((JSON.parse(nested) as { humanInTheLoop: unknown }).humanInTheLoop, { mode: 'REQUIRED' });
  assert.equal(set('{}', ['a'], 1), '{"a": 1}');
});

test('a value is removed with its comma, wherever it stands', () => {
  for (const path of [['name'], ['unknown'], ['code'], ['params', 0], ['params', 1], ['unknown', 'kept']] as (string | number)[][]) {
    const changed = set(DOCUMENT, path, undefined);
    const expected = JSON.parse(DOCUMENT) as Record<string, unknown>;
    const parent = path.length > 1 ? (expected[path[0] as string] as Record<string, unknown>) : expected;
    if (Array.isArray(parent)) parent.splice(path[1] as number, 1);
    else delete parent[path.at(-1) as string];
    assert.deepEqual(JSON.parse(changed), expected, String(path));
  }
  assert.equal(set(DOCUMENT, ['absent'], undefined), DOCUMENT);
  assert.equal(set(DOCUMENT, ['absent', 'deeper'], undefined), DOCUMENT);
});

test('any edit reads back as the value that was set', () => {
  // Every path of a document with every kind of value, from a seed that does not change.
  const values: unknown[] = ['', 'a"b\\\u2028', 0, -1.5e9, true, null, [], {}, [1, [2, { a: [] }]], { 'a.b': { '': 'x'.repeat(100) } }];
  for (const path of [['name'], ['new'], ['params'], ['params', 0], ['params', 1, 'new'], ['deep', 'er']] as (string | number)[][]) {
    for (const value of values) {
      const changed = set(DOCUMENT, path, value);
      assert.deepEqual(find(parse(changed), path)!.value, value);
      assert.deepEqual((JSON.parse(changed) as { unknown: unknown }).unknown, { kept: 1 });
    }
  }
});

test('what is no JSON is said with its place', () => {
  for (const [text, offset] of [['{"a": }', 6], ['{"a": 1,}', 8], ['[1 2]', 3], ['{"a": "x', 8], ['', 0], ['{} x', 3], ['{"a":1', 6], ['{"\\x":1}', 1]] as [string, number][]) {
    assert.throws(() => parse(text), (error) => error instanceof JsonError && error.offset === offset, text);
    assert.throws(() => JSON.parse(text));
  }
  assert.throws(() => parse('['.repeat(2000)), JsonError);
  assert.deepEqual(place('a\nbc', 3), { line: 2, column: 2 });
});

test('__proto__ is a name like any other', () => {
  const node = parse('{"__proto__": {"polluted": 1}}');
  assert.equal(({} as { polluted?: number }).polluted, undefined);
  assert.deepEqual(node.members[0]!.name, '__proto__');
});

test('a call becomes test values, which are always text', async () => {
  Object.assign(globalThis, { document: { addEventListener() {}, hidden: false }, location: { hash: '', pathname: '/' }, addEventListener() {} });
  const { withTestValues } = await import('../../src/lib/test-values');
  const changed = withTestValues(DOCUMENT, [{ name: 'x' }, { name: 'y' }], { x: 'text', y: { a: 1 }, other: 1 });
  const params = (JSON.parse(changed) as { params: { testValue: unknown }[] }).params;
  assert.deepEqual(params.map((param) => param.testValue), ['text', '{"a":1}']);
});
