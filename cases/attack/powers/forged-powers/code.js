const gone = (value) => (value === undefined ? "gone" : `there: ${typeof value}`);
const reach = (name) => { try { return gone((0, eval)(`typeof ${name} === "undefined" ? undefined : ${name}`)); } catch (error) { return `gone: ${error.name}`; } };
const inner = [safety.parser.html, crypto.subtle.digest, atob, console.log, URL].map((one) => gone(one.host ?? one.direct ?? one.queued));
return {
  "names of the host": ["host", "probe", "hostCall", "queued", "direct", "face", "reserve", "raw", "__host", "fetch", "XMLHttpRequest", "WebSocket", "Worker", "SharedArrayBuffer", "WebAssembly"].map(reach),
  "in the functions": inner,
  "safety.fs": gone(safety.fs),
  "by prototype": gone(Object.getPrototypeOf(safety).fs),
  "on the global object": Object.getOwnPropertyNames(globalThis).filter((name) => /^(host|probe|fetch|fs|native|std|os)/i.test(name)).map((name) => `there: ${name}`).concat("gone"),
};
