// A result that contains itself.
const a = {};
a.a = a;
return a;
