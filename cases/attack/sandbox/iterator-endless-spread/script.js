// Spreads an iterator that never ends.
const it = { [Symbol.iterator]() { return { next() { return { value: 1, done: false }; } }; } };
return [...it].length;
