// A proxy that is its own prototype, asked for a property.
const p = new Proxy({}, { getPrototypeOf() { return p; } });
return p instanceof Object || ({}) instanceof Function;
