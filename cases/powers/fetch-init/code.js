const echo = async (init) => (await fetch("http://api.example.com/echo", init)).json();
const header = async (headers, name) => (await echo({ headers })).headers[name];
const dropped = await echo({ headers: { Connection: "x", "Content-Length": "99", Expect: "100-continue", Host: "other.example.com", UPGRADE: "h2c" } });
return {
  "fetch.init.none": (await echo()).method,
  "fetch.init.method-upper": (await echo({ method: "post" })).method,
  "fetch.init.method-any": (await echo({ method: "PROPFIND" })).method,
  "fetch.init.method-refused": [await refusal(() => echo({ method: "CONNECT" })), await refusal(() => echo({ method: "A B" }))],
  "fetch.init.headers": await header({ "X-One": "1" }, "x-one"),
  "fetch.init.headers-null": await header({ "X-One": null }, "x-one") ?? "not sent",
  "fetch.init.headers-not-text": await refusal(() => echo({ headers: { "X-One": 1 } })),
  "fetch.init.headers-dropped": [dropped.headers.connection ?? null, dropped.headers["content-length"] ?? null, dropped.headers.expect ?? null, dropped.headers.host, dropped.headers.upgrade ?? null],
  "fetch.init.body-text": (await echo({ method: "POST", body: "é" })).body,
  "fetch.init.body-bytes": (await echo({ method: "POST", body: [104, 105] })).body,
  "fetch.init.body-buffer": [(await echo({ method: "PUT", body: new Uint8Array([104, 105]) })).body, (await echo({ method: "PUT", body: new TextEncoder().encode("ho").buffer })).body],
  "fetch.init.body-other": [(await echo({ method: "POST", body: 7 })).body, (await echo({ method: "POST", body: { a: 1 } })).body, (await echo({ method: "POST", body: null })).body],
  "fetch.init.body-dropped": [(await echo({ method: "GET", body: "x" })).body, (await fetch("http://api.example.com/echo", { method: "HEAD", body: "x" })).status],
};
