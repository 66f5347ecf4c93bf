// fetch: one queued call. `await fetch(...)` and `fetch(...).then(...)` work; the
// body is there when the promise settles, so `reply.json()` works with and without
// `await`.
//
// To the host: {url, method?, headers?, maxLength?, startIndex?} and the body's
// bytes. From the host: {status, ok, statusText, url, truncated, nextStartIndex,
// contentType, headers: [[lower-case name, value], ...]} and the bytes of the
// window that was asked for.
(host) => {
  const { queued, encode, decode } = host;
  const none = new Uint8Array(0);
  host.reserve("fetch");

  const bodyBytes = (body) => {
    if (typeof body === "string") return encode(body);
    if (body instanceof ArrayBuffer) return new Uint8Array(body);
    if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
    if (body && typeof body === "object" && typeof body.length === "number") {
      return Uint8Array.from(body, (byte) => Number(byte) & 255);
    }
    return none;
  };

  const plainHeaders = (headers) => {
    const pairs = typeof headers[Symbol.iterator] === "function" ? [...headers] : Object.entries(headers);
    return Object.fromEntries(pairs);
  };

  const reply = (value, bytes = none) => {
    const { headers, ...rest } = value;
    const find = (name) => {
      const wanted = `${name}`.toLowerCase();
      const found = headers.filter(([key]) => key === wanted).map(([, text]) => text);
      return found.length === 0 ? null : found.join(", ");
    };
    const text = () => decode(bytes);
    return {
      ...rest,
      headers: {
        get: find,
        has: (name) => find(name) !== null,
        entries: () => headers.map((pair) => [...pair])[Symbol.iterator](),
      },
      text,
      json: () => {
        try {
          return JSON.parse(text());
        } catch (error) {
          const message = `[fetch] the body is not JSON: ${error.message}`;
          throw Object.assign(new Error(message), { kind: "HELPER_RUNTIME", reason: "invalid-json", helper: "fetch" });
        }
      },
      arrayBuffer: () => bytes.slice().buffer,
    };
  };

  host.face("fetch", (global) => {
    global.fetch = (url, init) => {
      const { method, headers, body, maxLength, startIndex } = init ?? {};
      const asked = { url: url === undefined || url === null ? "" : `${url}` };
      if (method !== undefined && method !== null) asked.method = `${method}`;
      if (headers) asked.headers = plainHeaders(headers);
      if (typeof maxLength === "number") asked.maxLength = maxLength;
      if (typeof startIndex === "number") asked.startIndex = startIndex;
      return queued("fetch", asked, bodyBytes(body), reply);
    };
  });
}
