// The same, caught; the script goes on.
let depth = 0;
const f = () => { depth++; return 1 + f(); };
try { f(); } catch (e) { return [e.name, depth > 100]; }
