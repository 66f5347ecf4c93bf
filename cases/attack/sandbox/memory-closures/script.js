// Closures that hold each other.
let f = () => 1;
for (;;) { const g = f; f = () => g; }
