// Property names without end.
const o = {};
for (let i = 0; ; i++) o["k" + i] = 1;
