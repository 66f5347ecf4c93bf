import assert from 'node:assert/strict';
import { test } from 'node:test';
import { link, parse } from '../../src/lib/router';
import { words } from '../../src/lib/words';

test('an address reads back as what it was made of', () => {
  const to = link('audit', ['a/b?c#d'], { tool: 'ü &=', empty: '', none: undefined, n: 2 });
  const route = parse(to);
  assert.equal(route.page, 'audit');
  assert.deepEqual(route.path, ['a/b?c#d']);
  assert.deepEqual([...route.query], [['tool', 'ü &='], ['n', '2']]);
});

test('anything odd is a page that does not exist, never an error', () => {
  assert.equal(parse('').page, 'home');
  assert.equal(parse('#/%zz').page, '%zz');
  assert.equal(parse('#javascript:alert(1)').page, 'javascript:alert(1)');
  assert.deepEqual(parse('#/a?x=1?y=2').query.get('x'), '1?y=2');
});

test('a link never leaves the page', () => {
  for (const name of ['//evil.example', 'javascript:alert(1)', '../..', '\\\\evil']) assert.match(link(name, [name]), /^#\//);
});

test('a command line is split without a shell', () => {
  assert.deepEqual(words('npx -y "a b" c\\ d \'e"f\' ""'), ['npx', '-y', 'a b', 'c d', 'e"f', '']);
  assert.deepEqual(words('a; rm -rf $HOME `x`'), ['a;', 'rm', '-rf', '$HOME', '`x`']);
  assert.deepEqual(words('  '), []);
});
