// A species constructor that never returns.
const a = [1];
a.constructor = { get [Symbol.species]() { for (;;) {} } };
return a.map((x) => x);
