const reply = await fetch("http://api.example.com/a/b/relative");
return {
  "redirect.relative": [reply.text(), reply.url],
  "redirect.five": (await fetch("http://api.example.com/hop2")).text(),
  "fetch.reason.too-many-redirects": await refusal(() => fetch("http://api.example.com/hop1")),
};
