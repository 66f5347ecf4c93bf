// A proxy with half a million keys.
const p = new Proxy({}, {
  ownKeys() { return Array.from({ length: 100000 }, (_, i) => "k" + i); },
  getOwnPropertyDescriptor() { return { value: 1, enumerable: true, configurable: true }; },
});
for (;;) Object.keys(p);
