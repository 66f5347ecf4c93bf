// A loop over a slow native call postpones the interpreter's own check.
const a = new Array(1000000).fill(0);
let n = 0;
for (let i = 0; i < 1e9; i++) n += a.includes(1) ? 1 : 0;
return n;
