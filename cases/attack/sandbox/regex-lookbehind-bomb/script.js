// Quadratic lookbehind in a loop.
const s = "a".repeat(5000);
for (;;) /(?<=^(a+)+)b/.test(s);
