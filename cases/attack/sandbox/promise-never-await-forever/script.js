// Waits for a host call that is never answered.
await probe.queued("never");
