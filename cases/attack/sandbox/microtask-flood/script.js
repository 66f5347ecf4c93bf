// Microtasks that queue two each.
const f = () => { queueMicrotask(f); queueMicrotask(f); };
f();
await new Promise(() => {});
