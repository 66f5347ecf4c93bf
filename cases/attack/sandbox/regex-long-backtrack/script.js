// Catastrophic backtracking over a longer text.
return /(a|a)*b/.test("a".repeat(200));
