// Sets a length, then fills.
const a = [];
a.length = 2 ** 32 - 1;
return a.fill(0).length;
