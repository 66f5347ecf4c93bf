// The caller of a function of ours, by the old ways of sloppy functions.
const found = [];
function sneak() { for (const key of ['caller', 'arguments']) { try { found.push(typeof sneak[key]); } catch (error) { found.push(error.name); } } return 1; }
await probe.queued('echo', { toJSON: sneak });
return found.every((one) => one !== 'function');
