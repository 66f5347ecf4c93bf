const cut = async (init, path = "ten") => {
  const reply = await fetch(`http://api.example.com/${path}`, init);
  return [reply.text(), reply.truncated, reply.nextStartIndex];
};
let [all, start] = ["", 0];
while (start !== null) {
  const reply = await fetch("http://api.example.com/ten", { startIndex: start, maxLength: 4 });
  all += reply.text();
  start = reply.nextStartIndex;
}
return {
  "fetch.window.start": await cut({ startIndex: 7 }),
  "fetch.window.length": await cut({ maxLength: 3 }),
  "fetch.window.both": await cut({ startIndex: 2, maxLength: 3 }),
  "fetch.window.exact": await cut({ startIndex: 6, maxLength: 4 }),
  "fetch.window.clamped": [await cut({ startIndex: -5 }), await cut({ startIndex: 99 })],
  "fetch.window.length-none": [await cut({ maxLength: 0 }), await cut({ maxLength: -1 })],
  "fetch.window.walk": all,
  "fetch.window.json": await refusal(async () => (await fetch("http://api.example.com/json", { maxLength: 4 })).json()),
};
