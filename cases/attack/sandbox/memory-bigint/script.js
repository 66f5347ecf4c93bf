// BigInts kept.
const a = [];
for (let i = 0n; ; i++) a.push((1n << 100000n) + i);
