// Bytes more than allowed.
probe.direct("echo", 1, new Uint8Array(1000000));
