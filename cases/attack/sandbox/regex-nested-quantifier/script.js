// Catastrophic backtracking, (a+)+$.
return /(a+)+$/.test("a".repeat(30) + "!");
