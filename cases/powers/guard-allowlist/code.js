const text = async (url) => (await fetch(url)).text();
const message = (url) => fetch(url).catch((error) => error.message);
return {
  "guard.allowlist.exact": await text("http://api.example.com/"),
  "guard.allowlist.exact-only": [await refusal(() => text("http://www.api.example.com/")), await refusal(() => text("http://example.com/"))],
  "guard.allowlist.case": [await text("http://API.Example.Com/"), await text("http://upper.example.com/")],
  "guard.allowlist.dot": await text("http://api.example.com./"),
  "guard.allowlist.subdomain": await text("http://a.b.example.org/"),
  "guard.allowlist.apex": await text("http://example.org/"),
  "guard.allowlist.no-suffix": await refusal(() => text("http://evilexample.org/")),
  "guard.allowlist.port-ignored": await text("http://api.example.com:8080/"),
  "guard.allowlist.literal": await text("http://10.0.0.5/"),
  "guard.allowlist.inside-by-name": await refusal(() => text("http://intern.example.net/")),
  "guard.allowlist.inside-by-operator": await text("http://nas.example.net/"),
  "guard.allowlist.inside-by-pattern": await refusal(() => text("http://inside.example.org/")),
  "guard.allowlist.floor": await refusal(() => text("http://sneaky.example.net/")),
  "fetch.reason.host-not-in-allowlist": await refusal(() => text("http://93.184.216.34/")),
  "fetch.message.denied": await message("http://elsewhere.example/"),
};
