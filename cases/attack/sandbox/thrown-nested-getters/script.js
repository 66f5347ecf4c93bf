// Getters in what is thrown are named, not asked, at any depth and of any kind.
const loop = { get() { for (;;) {} } };
const list = Object.defineProperty([1, 2, 3], 1, loop);
throw { a: { b: Object.defineProperty({}, 'c', { ...loop, enumerable: true }) }, list, f: Object.defineProperty(() => 1, 'name', loop) };
