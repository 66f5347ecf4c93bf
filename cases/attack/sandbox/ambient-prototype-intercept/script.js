// Replaces what the prelude might call, to catch its functions.
const caught = [];
for (const name of ["call", "apply", "bind"]) {
  const old = Function.prototype[name];
  Function.prototype[name] = function (...rest) { caught.push(this); return Reflect.apply(old, this, rest); };
}
Array.prototype.push = function (x) { caught[caught.length] = x; };
await probe.queued("echo", 1);
probe.direct("echo", 2);
return caught.length;
