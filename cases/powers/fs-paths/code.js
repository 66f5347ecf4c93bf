const { fs } = safety;
const error = (() => { try { fs.readText("../outside/canary.txt"); } catch (caught) { return caught; } })();
const missing = (() => { try { fs.readText("none"); } catch (caught) { return caught; } })();
return {
  "fs.path.required": [await refusal(() => fs.readText()), await refusal(() => fs.readText("")), await refusal(() => fs.writeText("  ", "x"))],
  "fs.path.invalid": [await refusal(() => fs.readText("a\0b")), await refusal(() => fs.readText("x".repeat(5000)))],
  "fs.path.not-text": await refusal(() => fs.readText(7)),
  "fs.path.escapes-base": [await refusal(() => fs.readText("../outside/canary.txt")), await refusal(() => fs.readText("/etc/passwd")), await refusal(() => fs.readText("out"))],
  "fs.path.message": error.message,
  "fs.path.helper-policy": [error.kind, error.helper],
  "fs.path.helper-function": [missing.kind, missing.reason, missing.helper],
  "fs.write.through-symlink": await refusal(() => fs.writeText("inside", "x")),
  "fs.write.outside-workspace": [await refusal(() => fs.writeText("../x.txt", "x")), await refusal(() => fs.appendText("/tmp/x.txt", "x")), await refusal(() => fs.copy("a.txt", "../b.txt")), await refusal(() => fs.move("a.txt", "../b.txt"))],
};
