// What every script has, whatever its powers.
(host) => {
  host.reserve("console", host.console);
  for (const name of ["queueMicrotask", "performance"]) host.reserve(name);
  // Threads do not exist here, so memory shared between them should not either.
  delete globalThis.SharedArrayBuffer;
}
