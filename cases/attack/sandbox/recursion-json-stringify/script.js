// 200,000 levels, stringified.
let a = [];
for (let i = 0; i < 200000; i++) a = [a];
return JSON.stringify(a).length;
