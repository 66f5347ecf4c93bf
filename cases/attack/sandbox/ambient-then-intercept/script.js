// Replaces then, to catch what the host resolves with.
let n = 0;
const old = Promise.prototype.then;
Promise.prototype.then = function (...a) { n++; return Reflect.apply(old, this, a); };
const v = await probe.queued("echo", 5);
return v;
