// A string that doubles.
let s = "x";
for (;;) s += s + "\u1234".charAt(0) && s;
