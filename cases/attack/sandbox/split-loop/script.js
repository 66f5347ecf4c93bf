// Splits a large string over and over.
const s = "ab".repeat(100000);
let n = 0;
for (;;) n += s.split("b").length;
