// The functions on the stack, one of which would be the raw call to the host.
let sites = [];
const hook = (error, found) => { if (!sites.length) sites = found; return ''; };
try { Error.prepareStackTrace = hook; } catch {}
try { Object.defineProperty(Error, 'prepareStackTrace', { value: hook }); } catch {}
class Mine extends Error { static prepareStackTrace = hook; static stackTraceLimit = 50; }
const throwing = { toJSON: () => { const error = new Mine('p'); Error.captureStackTrace(error, Mine); void error.stack; throw error; } };
try { await probe.queued('echo', throwing); } catch {}
try { probe.direct('echo', throwing); } catch {}
return [sites.length, typeof Error.prepareStackTrace, typeof Error.stackTraceLimit];
