// Looks for the raw host functions behind the face.
const f = probe.queued;
return [f.toString().includes("native"), Object.getOwnPropertyNames(f), f.caller === undefined];
