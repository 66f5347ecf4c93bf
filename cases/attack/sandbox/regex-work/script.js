// Backtracking counts as work.
return /(a+)+$/.test("a".repeat(40) + "!");
