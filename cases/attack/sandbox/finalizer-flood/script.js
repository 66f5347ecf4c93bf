// Finalizers that register more.
const r = new FinalizationRegistry(() => { r.register({}, 1); r.register({}, 1); });
r.register({}, 1);
for (;;) await null;
