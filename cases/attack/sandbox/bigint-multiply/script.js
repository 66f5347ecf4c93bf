// One multiplication of half a million bits, over and over.
const x = (1n << 500000n) - 1n;
let s = 0n;
for (;;) s ^= x * (x - 12345n);
