const seen = {};
for (const status of [200, 201, 204, 301, 302, 304, 400, 401, 403, 404, 500, 502, 503, 202, 418]) {
  const reply = await fetch(`http://api.example.com/${status}`);
  seen[status] = [reply.statusText, reply.ok];
}
const { 202: accepted, 418: teapot, ...known } = seen;
return {
  "fetch.reply.statusText": Object.values(known).map(([word]) => word),
  "fetch.reply.statusText-other": [accepted[0], teapot[0]],
  "fetch.reply.ok-range": Object.entries(seen).filter(([, [, ok]]) => ok).map(([status]) => status),
  "redirect.without-location": seen[301][0],
  "redirect.304-is-an-answer": seen[304][0],
};
