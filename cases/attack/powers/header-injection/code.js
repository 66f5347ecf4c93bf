const send = (init) => refusal(() => fetch("http://api.example.com/", init));
return {
  "in a value": await send({ headers: { "X-A": "a\r\nX-B: b" } }),
  "a line feed": await send({ headers: { "X-A": "a\nX-B: b" } }),
  "a nul": await send({ headers: { "X-A": "a\0b" } }),
  "in a name": await send({ headers: { "X-A: a\r\nX-B": "b" } }),
  "an empty name": await send({ headers: { "": "b" } }),
  "in the method": await send({ method: "GET / HTTP/1.1\r\nX-B: b\r\n\r\nGET" }),
  "beyond Latin-1": await send({ headers: { "X-A": "\u560a\u560d" } }),
  "too many": await send({ headers: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`x-${at}`, "1"])) }),
  "too large": await send({ headers: { "X-A": "a".repeat(40000) } }),
};
