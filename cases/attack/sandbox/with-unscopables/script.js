// A with statement over a proxy that has everything.
with (new Proxy({}, { has: () => true, get: () => 1 })) {
  while (x) {}
}
