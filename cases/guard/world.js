// The tools the scripts of this folder call, as a table of plain functions. Whoever
// runs the scripts makes `callTool` of it.
({
  'users:list': ({ limit = 4 } = {}) =>
    [
      { id: 1, name: 'Ada', active: true, score: 10, city: 'Wien' },
      { id: 2, name: 'Björn', active: false, score: 7, city: 'Oslo' },
      { id: 3, name: 'Chloé', active: true, score: 12, city: 'Wien' },
      { id: 4, name: 'Дмитрий', active: true, score: 3, city: 'Rīga' },
    ].slice(0, limit),
  'users:get': ({ id }) => {
    if (id > 4) throw new Error('no such user');
    return { id, name: ['Ada', 'Björn', 'Chloé', 'Дмитрий'][id - 1] };
  },
  'orders:list': ({ userId }) => [
    { id: userId * 10, total: 12.5, paid: true },
    { id: userId * 10 + 1, total: 7.25, paid: userId % 2 === 1 },
  ],
  'text:echo': (args) => args,
  'math:add': ({ a, b }) => a + b,
  'files:read': ({ path }) => ({ path, text: 'one\ntwo\nthree' }),
  'page:next': ({ cursor = 0 }) => ({ items: [cursor, cursor + 1], next: cursor < 4 ? cursor + 2 : null }),
  'always:fails': () => {
    throw new Error('broken on purpose');
  },
})
