// A generator that refuses to be closed.
function* g() { while (true) { try { yield 1; } finally { for (;;) {} } } }
for (const x of g()) break;
