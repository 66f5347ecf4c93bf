// atob and btoa: the engine's own, with errors like those of every other helper.
(host) => {
  for (const [name, reason, message] of [
    ["atob", "invalid-base64", "the text is not base64"],
    ["btoa", "non-latin-1", "the text has a character beyond Latin-1; encode it first"],
  ]) {
    const native = globalThis[name];
    const fault = (error, why) => Object.assign(error, { kind: "INVALID_INPUT", reason: why, helper: name });
    host.reserve(name, (...values) => {
      if (values[0] === undefined || values[0] === null) throw fault(new TypeError(`${name} needs a text`), "missing-input");
      const text = `${values[0]}`;
      try {
        return native(text);
      } catch {
        throw fault(new DOMException(message, "InvalidCharacterError"), reason);
      }
    });
  }
}
