// Lines without end.
for (;;) console.log("x");
