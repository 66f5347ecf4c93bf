// An endless chain of promises, never a loop.
const next = () => Promise.resolve().then(next);
await next();
