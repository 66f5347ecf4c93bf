// The face of `fetch` in tool code: a draft that fixes the wire. `ask(power,
// arguments, bytes)` stands for whatever carries data to the host; it gives a
// promise of `{value, bytes}` and rejects with an error that has `kind`, `reason`,
// `helper` and `message`.
//
// To the host: arguments
//   url         string, required, else `missing-url`
//   method      string; absent means GET; upper-cased by the host
//   headers     object of strings; null values are skipped; any other value is
//               `invalid-header`
//   maxLength   number of bytes; absent, zero or less means no end
//   startIndex  number of bytes; absent or less than zero means the start
// and bytes: the body, empty when there is none. The host drops it for GET, HEAD.
//
// From the host: value
//   status, ok, statusText, url, truncated, nextStartIndex (number or null),
//   contentType (string or null), headers: [[lower-case name, value], ...]
// and bytes: the window of the body that was asked for.

((ask, makeError) => {
  const bodyBytes = (body) => {
    if (typeof body === "string") return new TextEncoder().encode(body);
    if (body instanceof ArrayBuffer) return new Uint8Array(body);
    if (body && typeof body === "object" && typeof body.length === "number") {
      return Uint8Array.from(body, (byte) => Number(byte) & 255);
    }
    return new Uint8Array(0);
  };

  const plainHeaders = (headers) => {
    const pairs =
      headers && typeof headers[Symbol.iterator] === "function" ? [...headers] : Object.entries(headers ?? {});
    return Object.fromEntries(pairs);
  };

  const faceOf = ({ value, bytes }) => {
    const { headers, ...rest } = value;
    const find = (name) => {
      const wanted = String(name).toLowerCase();
      const found = headers.filter(([key]) => key === wanted).map(([, text]) => text);
      return found.length === 0 ? null : found.join(", ");
    };
    const text = () => new TextDecoder().decode(bytes);
    return Object.freeze({
      ...rest,
      headers: Object.freeze({
        get: find,
        has: (name) => find(name) !== null,
        entries: () => headers.map((pair) => [...pair])[Symbol.iterator](),
      }),
      // Plain values: `reply.json()` and `await reply.json()` both work.
      text,
      json: () => {
        try {
          return JSON.parse(text());
        } catch (error) {
          throw makeError("HELPER_RUNTIME", "invalid-json", "fetch", `[fetch] the body is not JSON: ${error.message}`);
        }
      },
      arrayBuffer: () => bytes.slice().buffer,
    });
  };

  // A promise: `await fetch(...)` and `fetch(...).then(...)` both work.
  globalThis.fetch = (url, init) => {
    const { method, headers, body, maxLength, startIndex } = init ?? {};
    const asked = { url: url === undefined || url === null ? "" : String(url) };
    if (method !== undefined && method !== null) asked.method = String(method);
    if (headers) asked.headers = plainHeaders(headers);
    if (typeof maxLength === "number") asked.maxLength = maxLength;
    if (typeof startIndex === "number") asked.startIndex = startIndex;
    return ask("fetch", asked, bodyBytes(body)).then(faceOf);
  };
});
