// What rewritten scripts call: the one budget of turns, and the gate of computed keys.
// What they need is taken before a script can touch it.
//
// The guard (crates/guard/src/runtime.rs) puts this same text before scripts that run
// elsewhere, on one line: a comment has a line of its own, a statement ends in `;`.
(host) => {
  const text = String, range = RangeError, type = TypeError;
  const { defineProperty } = Object;
  // Computed, because `__proto__: 1` would set the prototype.
  const refused = {
    __proto__: null,
    constructor: 1,
    prototype: 1,
    ["__proto__"]: 1,
    __defineGetter__: 1,
    __defineSetter__: 1,
    __lookupGetter__: 1,
    __lookupSetter__: 1,
    getOwnPropertyDescriptor: 1,
    getOwnPropertyDescriptors: 1,
    getOwnPropertySymbols: 1,
    getPrototypeOf: 1,
    setPrototypeOf: 1,
    defineProperty: 1,
    defineProperties: 1,
  };
  let most = 0;
  let left = 0;
  const fail = (error, code) => {
    error.code = code;
    throw error;
  };
  const turn = () => {
    if (--left < 0) fail(new range("the loops of this script went round more than " + most + " times"), "ITERATION_LIMIT");
  };
  const guardKey = (key) => {
    if (typeof key === "number" || typeof key === "symbol") return key;
    const name = text(key);
    if (refused[name] === 1) fail(new type("the key `" + name + "` is not allowed"), "KEY_REFUSED");
    return name;
  };
  host.face("guard", (global) => {
    left = most = global.__ag_turns;
    defineProperty(global, "__ag_turn", { value: turn });
    defineProperty(global, "__ag_guardKey", { value: guardKey });
  });
}
