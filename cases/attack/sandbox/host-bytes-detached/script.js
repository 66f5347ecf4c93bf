// Detaches the bytes while the payload is written.
const b = new Uint8Array(8);
try { return probe.direct("echo", { toJSON() { b.buffer.transfer(); return 1; } }, b); } catch (e) { return e.name; }
