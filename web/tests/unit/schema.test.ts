import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alternative, initial, resolve, shape, takesNull, title } from '../../src/lib/schema';

const kind = (schema: Record<string, unknown>) => shape(schema, schema).kind;

test('every type has its shape, and what has none is edited as JSON', () => {
  assert.equal(kind({ type: 'string' }), 'text');
  assert.equal(kind({ type: 'integer' }), 'number');
  assert.equal(kind({ type: 'boolean' }), 'flag');
  assert.equal(kind({ enum: ['a', 'b'] }), 'choice');
  assert.equal(kind({ type: 'array', items: { type: 'string' } }), 'list');
  assert.equal(kind({ type: 'object', properties: {} }), 'object');
  assert.equal(kind({ type: ['string', 'integer'] }), 'union');
  assert.equal(kind({}), 'json');
  assert.equal(kind({ type: 'array' }), 'json');
});

test('null is a state, never a shape', () => {
  assert.deepEqual(shape({ type: ['string', 'null'] }, {}).kind, 'text');
  assert.deepEqual(shape({ enum: ['a', null] }, {}), { kind: 'choice', values: ['a'] });
  assert.deepEqual(shape({ anyOf: [{ type: 'integer' }, { type: 'null' }] }, {}), { kind: 'number', isWhole: true });
  for (const schema of [{ type: ['string', 'null'] }, { enum: ['a', null] }, { anyOf: [{ type: 'integer' }, { type: 'null' }] }]) assert.equal(takesNull(schema, {}), true);
  assert.equal(takesNull({ type: 'string' }, {}), false);
});

test('optional fields begin left out, required ones with an empty value', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer', minimum: 3 }, c: { type: 'string' } }, required: ['a', 'b'] };
  assert.deepEqual(initial(schema, schema), { a: '', b: 3 });
});

test('a union at the root keeps the fields beside it', () => {
  const schema = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], oneOf: [{ properties: { mail: { type: 'string' } }, required: ['mail'] }, { properties: { phone: { type: 'string' } }, required: ['phone'] }] };
  const of = shape(schema, schema);
  assert.equal(of.kind, 'union');
  if (of.kind !== 'union') return;
  assert.deepEqual(initial(of.options[1]!, schema), { id: '', phone: '' });
  assert.equal(alternative(of.options, { id: 'x', phone: '1' }, schema), 1);
  assert.equal(alternative(of.options, { id: 'x', mail: '1' }, schema), 0);
  assert.equal(title(of.options[1]!, schema, 1), 'id, phone');
});

test('constants make a choice', () => {
  assert.deepEqual(shape({ oneOf: [{ const: 'a' }, { const: 'b' }] }, {}), { kind: 'choice', values: ['a', 'b'] });
});

test('references are followed, and one that goes round ends', () => {
  const root = { $defs: { 'a/b': { type: 'string' }, loop: { $ref: '#/$defs/loop' } } };
  assert.equal(resolve({ $ref: '#/$defs/a~1b' }, root).type, 'string');
  assert.equal(shape({ $ref: '#/$defs/loop' }, root).kind, 'json');
  const tree: Record<string, unknown> = { type: 'object', properties: { child: { $ref: '#' } }, required: [] };
  assert.equal(shape(tree, tree).kind, 'object');
});
