// Errors inside errors, in a circle, with getters for what they say.
const one = new AggregateError([], 'all of them');
const two = Object.defineProperty(new Error('two', { cause: one }), 'stack', { get() { for (;;) {} } });
Object.defineProperty(one, 'errors', { value: [one, two, new Proxy({}, { get() { for (;;) {} } })] });
throw one;
