// Sorts a typed array over and over.
const a = new Float64Array(2000000);
for (;;) { a.sort(); a.reverse(); }
