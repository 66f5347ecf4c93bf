// A shared graph of 2^28 leaves, stringified.
let a = [1];
for (let i = 0; i < 28; i++) a = [a, a];
return JSON.stringify(a).length;
