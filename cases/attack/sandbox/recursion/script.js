// Ordinary recursion without end.
const f = () => 1 + f();
return f();
