// Walks the call stack through a prelude function.
let seen = "nothing";
const spy = { toJSON() { try { seen = typeof spy.toJSON.caller; } catch (e) { seen = e.name; } return 1; } };
probe.direct("echo", spy);
return seen;
