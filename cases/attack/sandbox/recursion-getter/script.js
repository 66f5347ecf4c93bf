// Recursion through a getter.
const o = { get x() { return this.x; } };
return o.x;
