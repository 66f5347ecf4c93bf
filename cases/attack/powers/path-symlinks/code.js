const { fs } = safety;
const all = async (path) => ({
  readText: await refusal(() => fs.readText(path)), list: await refusal(() => fs.list(path)), stat: await refusal(() => fs.stat(path)), grep: await refusal(() => fs.grep("C", path)),
  slice: await refusal(() => fs.slice(path)), sort: await refusal(() => fs.sort(path)), copy: await refusal(() => fs.copy(path, "taken.txt")), writeText: await refusal(() => fs.writeText(path, "x")),
  appendText: await refusal(() => fs.appendText(path, "x")), delete: await refusal(() => fs.delete(path)), move: await refusal(() => fs.move(path, "moved.txt")), deleteDir: await refusal(() => fs.deleteDir(path)),
});

const reading = async (path) => ({ readText: await refusal(() => fs.readText(path)), stat: await refusal(() => fs.stat(path)), list: await refusal(() => fs.list(path)), copy: await refusal(() => fs.copy(path, "taken.txt")) });
return { file: await reading("file"), relative: await reading("relative"), "behind a folder": await all("folder/canary.txt"), "a magic link": await all("process/root/etc/passwd"), writing: [await refusal(() => fs.writeText("file", "x")), await refusal(() => fs.appendText("relative", "x"))] };
