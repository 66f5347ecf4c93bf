// An async iterator whose results are thenables with getters.
const found = [];
let n = 0;
const iterator = { next: () => ({ get then() { n++; return (resolve) => resolve({ done: n > 2, value: n }); } }) };
for await (const value of { [Symbol.asyncIterator]: () => iterator }) found.push(value);
return found;
