// More calls than allowed.
for (;;) probe.direct("echo", 1);
