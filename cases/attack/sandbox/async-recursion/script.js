// Async functions awaiting each other without end.
const f = async () => { await null; return f(); };
await f();
