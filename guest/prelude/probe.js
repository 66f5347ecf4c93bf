// The bare host calls, for tests and benches.
(host) => {
  const { queued, direct, kind } = host;
  const shape = (value, bytes) => (bytes === undefined ? value : { value, bytes });
  host.face("probe", (global) => {
    global.probe = {
      queued: (operation, value, bytes) => queued(operation, value, bytes, shape),
      direct: (operation, value, bytes) => direct(operation, value, bytes, shape),
      kind: (value) => kind(value),
    };
  });
}
