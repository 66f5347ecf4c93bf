// A finalizer that never returns.
let r = new FinalizationRegistry(() => { for (;;) {} });
(() => { for (let i = 0; i < 10; i++) r.register({}, i); })();
await null;
await null;
for (;;) await null;
