// An answer larger than allowed.
await probe.queued("big");
