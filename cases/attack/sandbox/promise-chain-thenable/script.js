// A thenable that resolves with itself anew.
const make = () => ({ then(done) { done(make()); } });
await make();
