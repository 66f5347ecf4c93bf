// An endless async generator.
const g = async function* () { while (true) yield 1; };
for await (const x of g()) {}
