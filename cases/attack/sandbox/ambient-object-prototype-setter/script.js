// Setters on Object.prototype that would catch what the host assigns.
let caught = 0;
for (const key of ["value", "bytes", "message", "kind", "reason", "helper", "probe"]) {
  Object.defineProperty(Object.prototype, key, { __proto__: null, set() { caught++; }, configurable: true });
}
try { probe.direct("fail"); } catch {}
return caught;
