// A finalizer that calls the host: it may run, as the script, and never after its end.
const registry = new FinalizationRegistry(() => probe.queued('echo', 'late').catch(() => {}));
for (let i = 0; i < 5; i++) registry.register({ i }, i);
for (let i = 0; i < 30000; i++) [i, { i }];
await probe.queued('echo', 1);
return typeof registry.register === 'function';
