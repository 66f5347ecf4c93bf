// A buffer that is detached while it is copied.
const b = new ArrayBuffer(8);
return [{ toJSON() { b.transfer(); return 1; } }, new Uint8Array(b)];
