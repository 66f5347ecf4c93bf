// A payload that never finishes.
probe.queued("echo", { toJSON() { for (;;) {} } });
