// Sorts by string, natively, over and over.
const a = Array.from({ length: 200000 }, (_, i) => (i * 7919) % 200000);
for (;;) { a.sort(); a.reverse(); }
