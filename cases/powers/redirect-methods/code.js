const via = async (status, method) => {
  const reply = await fetch(`http://api.example.com/${status}`, { method, body: method === "GET" ? undefined : "b", headers: { "Content-Type": "text/plain" } });
  const { method: got, body, headers } = reply.json();
  return [got, body, headers["content-type"] ?? null].join(" ").trimEnd();
};
const all = async (status) => [await via(status, "GET"), await via(status, "POST"), await via(status, "PUT"), await via(status, "PATCH"), await via(status, "DELETE")];
return {
  "redirect.301": await all(301),
  "redirect.302": await all(302),
  "redirect.303": await all(303),
  "redirect.307": await all(307),
  "redirect.308": await all(308),
  "redirect.300": (await fetch("http://api.example.com/300")).url,
};
