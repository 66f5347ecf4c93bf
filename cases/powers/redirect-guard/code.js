const reply = (await fetch("http://api.example.com/listed", { headers: { Authorization: "Bearer x", Cookie: "c=1", "X-Api-Key": token, "X-Plain": "kept" } })).json();
return {
  "redirect.other-host": reply.headers.host,
  "redirect.credentials-dropped": [reply.headers.authorization ?? null, reply.headers.cookie ?? null, reply.headers["x-api-key"] ?? null],
  "redirect.plain-headers-kept": reply.headers["x-plain"],
  "redirect.rechecked": [await refusal(() => fetch("http://api.example.com/unlisted")), await refusal(() => fetch("http://api.example.com/metadata"))],
};
