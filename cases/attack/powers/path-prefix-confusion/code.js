const { fs } = safety;
const all = async (path) => ({
  readText: await refusal(() => fs.readText(path)), list: await refusal(() => fs.list(path)), stat: await refusal(() => fs.stat(path)), grep: await refusal(() => fs.grep("C", path)),
  slice: await refusal(() => fs.slice(path)), sort: await refusal(() => fs.sort(path)), copy: await refusal(() => fs.copy(path, "taken.txt")), writeText: await refusal(() => fs.writeText(path, "x")),
  appendText: await refusal(() => fs.appendText(path, "x")), delete: await refusal(() => fs.delete(path)), move: await refusal(() => fs.move(path, "moved.txt")), deleteDir: await refusal(() => fs.deleteDir(path)),
});

return { dots: await all("../ws-old/canary.txt"), absolute: await all(`${fs.workspace()}-old/canary.txt`), folder: await all("../ws-old"), "through a folder": await all("a/../../ws-old/canary.txt") };
