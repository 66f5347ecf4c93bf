// Recursion through proxies of proxies.
let p = {};
for (let i = 0; i < 100000; i++) p = new Proxy(p, {});
return p.x;
