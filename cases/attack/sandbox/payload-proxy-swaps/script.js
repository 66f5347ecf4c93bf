// A payload that says something else each time it is asked is asked once.
let asked = 0;
const payload = { toJSON() { asked++; return asked === 1 ? 'first' : 'second'; } };
const said = await probe.queued('echo', payload);
return [said.value ?? said, asked];
