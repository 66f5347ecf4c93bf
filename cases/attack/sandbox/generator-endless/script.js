// An endless generator.
const g = function* () { while (true) yield 1; };
for (const x of g()) {}
