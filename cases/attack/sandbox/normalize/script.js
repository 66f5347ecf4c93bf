// Unicode normalisation of millions of characters.
const s = "\u1E9B\u0323".repeat(1000000);
let n = 0;
for (;;) n += s.normalize("NFKD").length;
