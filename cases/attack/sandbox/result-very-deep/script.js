// A result nested a million deep.
let a = [];
for (let i = 0; i < 300000; i++) a = [a];
return a;
