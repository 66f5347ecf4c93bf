// A call inside the payload of a call.
return probe.direct("echo", { toJSON() { return probe.direct("echo", 2); } });
