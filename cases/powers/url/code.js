const url = new URL("https://api.example.com:8443/a%20b/c?x=1&y=%C3%A9#part");
const plain = new URL("http://example.com");
const parts = (one) => ({ href: one.href, protocol: one.protocol, host: one.host, hostname: one.hostname, port: one.port, pathname: one.pathname, search: one.search, hash: one.hash, origin: one.origin });
let unmade;
try { URL("http://a/"); } catch (error) { unmade = error.name; }
const live = new URL("http://example.com/?a=1");
live.searchParams.set("a", "2");
return {
  "url.new-only": unmade,
  "url.base": [new URL("../d", "http://example.com/a/b/c").href, new URL("//other.example/x", "https://example.com").href],
  "url.parts": parts(url),
  "url.parts-empty": parts(plain),
  "url.origin-null": new URL("mailto:someone@example.com").origin,
  "url.searchParams": [url.searchParams.get("y"), live.href],
  "url.toString": `${url}` === url.href,
  "url.missing-input": await refusal(() => new URL()),
  "url.invalid-url": [await refusal(() => new URL("no scheme")), await refusal(() => new URL("http://"))],
};
