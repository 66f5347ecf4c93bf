// Stands inside a direct call that is never answered.
probe.direct("never");
