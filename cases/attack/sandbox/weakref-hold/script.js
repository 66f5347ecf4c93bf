// Weak references without end.
const a = [];
for (;;) a.push(new WeakRef({}));
