// A map that changes while it is copied.
const m = new Map();
m.set("a", { toJSON() { m.delete("a"); m.clear(); return 1; } });
m.set("b", 2);
return m;
