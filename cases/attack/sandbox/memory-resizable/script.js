// A resizable buffer, resized up.
const b = new ArrayBuffer(1, { maxByteLength: 2 ** 30 });
for (let n = 1; ; n *= 2) b.resize(n);
