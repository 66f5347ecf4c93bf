const { fs } = safety;
return {
  "fs.find": fs.find().sort(),
  "fs.find.glob": fs.find(".", "*.{txt,md}").sort(),
  "fs.find.maxDepth": [fs.find(".", "*", { maxDepth: 1 }).length, fs.find(".", "*.md", { maxDepth: 0 }).length],
  "fs.find.type": [fs.find(".", "*", { type: "dir" }).sort(), fs.find("sub", "*", { type: "file" }).sort()],
  "fs.find.links": fs.find(".", "loop"),
  "fs.find.not-a-directory": await refusal(() => fs.find("a.txt")),
  "fs.find.invalid-glob": await refusal(() => fs.find(".", "[")),
  "fs.searchInFiles": fs.searchInFiles(".", "*", "needle"),
  "fs.searchInFiles.caseInsensitive": fs.searchInFiles("sub", "*.log", "NEEDLE", { caseInsensitive: true }).map((found) => found.line),
  "fs.searchInFiles.limit": [fs.searchInFiles("sub", "*", "eedle", { limit: 1 }).length, fs.searchInFiles("sub", "*", "eedle", { limit: 0 }).length],
  "fs.searchInFiles.maxDepth": fs.searchInFiles(".", "*", "needle", { maxDepth: 1 }),
  "fs.searchInFiles.pattern-required": await refusal(() => fs.searchInFiles(".", "*", "")),
  "fs.searchInFiles.not-a-directory": await refusal(() => fs.searchInFiles("a.txt", "*", "x")),
  "fs.searchInFiles.invalid-glob": await refusal(() => fs.searchInFiles(".", "[", "x")),
  "fs.searchInFiles.invalid-pattern": await refusal(() => fs.searchInFiles(".", "*", "(")),
};
