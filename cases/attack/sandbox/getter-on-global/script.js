// A getter on the global object for a name the host reads.
Object.defineProperty(globalThis, "Promise", { get() { for (;;) {} } });
return await 5;
