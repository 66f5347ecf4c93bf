// The work budget, with no clock involved.
for (;;) {}
