// A very long name for an operation.
probe.direct("o".repeat(100000), 1);
