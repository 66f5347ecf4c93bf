// A result nested deeper than allowed.
let a = [];
for (let i = 0; i < 100; i++) a = [a];
return a;
