// Symbols without end.
const a = [];
for (;;) a.push(Symbol("s"));
