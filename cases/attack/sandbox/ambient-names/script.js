// Looks for anything that should not be there.
return ["require", "process", "std", "os", "bjson", "setTimeout", "setInterval", "fetch", "WebAssembly", "Deno", "Packages", "Polyglot", "SharedArrayBuffer", "Atomics", "Worker", "gc", "print", "load", "scriptArgs", "navigator", "host", "queued", "direct", "faces", "__call"].filter((name) => name in globalThis);
