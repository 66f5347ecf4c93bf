// A buffer larger than the memory.
return new ArrayBuffer(2 ** 30).byteLength;
