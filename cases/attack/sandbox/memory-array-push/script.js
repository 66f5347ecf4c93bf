// An array that grows for ever.
const a = [];
for (;;) a.push({ x: a.length });
