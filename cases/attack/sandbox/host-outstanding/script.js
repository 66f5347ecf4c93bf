// More calls at one time than allowed.
for (;;) probe.queued("never", 1);
