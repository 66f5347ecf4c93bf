// A function bound again and again: its name grows each time.
let f = () => 1;
for (;;) f = f.bind(null);
