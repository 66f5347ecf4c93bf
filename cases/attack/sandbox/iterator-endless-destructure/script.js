// Array.from over an endless iterator that yields nothing.
const it = { [Symbol.iterator]() { return { next() { return { done: false }; } }; } };
for (const x of it) {}
