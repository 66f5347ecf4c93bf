const { fs } = safety;
const stat = fs.stat("a.txt");
return {
  "fs.readText": [fs.readText("a.txt"), fs.readText("./sub/../a.txt"), fs.readText(`${fs.workspace()}/a.txt`), fs.readText("empty.txt")],
  "fs.readText.link-inside": fs.readText("inside"),
  "fs.readText.await": await fs.readText("sub/b.txt"),
  "fs.readText.not-utf8": await refusal(() => fs.readText("not-text.bin")),
  "fs.readText.file-too-large": await refusal(() => fs.readText("large.txt")),
  "fs.list": fs.list().sort(),
  "fs.list.display": fs.list("sub").sort(),
  "fs.list.missing": fs.list("none"),
  "fs.list.not-a-directory": await refusal(() => fs.list("a.txt")),
  "fs.exists": [fs.exists("a.txt"), fs.exists("sub"), fs.exists("none")],
  "fs.exists.escape": [fs.exists("../outside/canary.txt"), fs.exists("/etc/passwd")],
  "fs.stat": [Object.keys(stat), stat.size, Number.isInteger(stat.mtime), stat.directory, fs.stat("sub").directory],
  "fs.stat.io": await refusal(() => fs.stat("none")),
  "fs.lineCount": [fs.lineCount("a.txt"), fs.lineCount("empty.txt"), fs.lineCount("sub/b.txt")],
};
