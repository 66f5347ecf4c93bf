// Strings that double and are made flat.
const kept = [];
let s = "x";
for (;;) { s = (s + s).split("").join(""); kept.push(s); }
