// Each thenable settles with the next one.
const next = () => ({ then(resolve) { resolve(next()); } });
await next();
