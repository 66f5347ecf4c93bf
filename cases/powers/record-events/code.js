const { fs } = safety;
fs.writeText("b.txt", "héllo");
fs.copy("a.txt", "c.txt");
const refused = [await refusal(() => fs.readText("../outside/canary.txt")), await refusal(() => fetch("http://api.example.com/away"))];
const bytes = (await fetch("http://api.example.com/page", { method: "POST", body: "to it" })).text().length;
return {
  "record.file": fs.readText("a.txt").length,
  "record.fetch": bytes,
  "record.refusal": refused,
};
