// The same with most of the memory in use.
const live = [];
for (let i = 0; i < 12; i++) live.push(new Uint8Array(1 << 20));
for (let i = 0; i < 300000; i++) { const a = { pad: new Array(20).fill(i) }; a.self = a; }
return live.length;
