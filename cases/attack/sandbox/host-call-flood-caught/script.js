// The same, caught.
for (;;) { try { await probe.queued("echo", 1); } catch {} }
