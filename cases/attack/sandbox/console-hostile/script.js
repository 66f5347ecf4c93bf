// Objects that refuse to be shown.
const p = new Proxy({}, { ownKeys() { throw new Error("no"); } });
console.log(p, { get a() { throw null; } });
return "fine";
