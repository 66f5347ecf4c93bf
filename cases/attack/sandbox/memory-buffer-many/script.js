// Many buffers, each of a decent size.
const a = [];
for (;;) a.push(new ArrayBuffer(1 << 20));
