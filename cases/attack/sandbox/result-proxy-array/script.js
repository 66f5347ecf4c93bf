// A proxy that claims to be an endless array.
return new Proxy([], { get(t, k) { return k === "length" ? 2 ** 53 - 1 : k === "toJSON" ? undefined : 1; } });
