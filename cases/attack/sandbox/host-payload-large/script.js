// A payload larger than allowed.
probe.queued("echo", "x".repeat(1000000));
