// A pattern that keeps a great deal of state.
return /(?:(a)|b)*$/.test("ab".repeat(5000000)) || 1;
