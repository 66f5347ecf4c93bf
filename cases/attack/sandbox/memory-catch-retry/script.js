// Catches running out of memory and tries again.
const a = [];
for (;;) {
  try {
    for (;;) a.push(new Uint8Array(65536));
  } catch {}
}
