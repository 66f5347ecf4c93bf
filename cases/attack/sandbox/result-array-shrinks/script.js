// An array that shrinks while it is copied.
const a = [{ toJSON() { a.length = 0; return 1; } }, 2, 3];
return a;
