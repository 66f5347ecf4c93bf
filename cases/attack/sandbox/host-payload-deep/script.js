// A payload nested too deep is an ordinary error.
let a = [];
for (let i = 0; i < 1000; i++) a = [a];
try { probe.direct("echo", a); } catch (e) { return e.name; }
