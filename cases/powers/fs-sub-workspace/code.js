return {
  "fs.sub-workspace": safety.fs.workspace(),
  "fs.sub-workspace-empty": safety.fs.list("."),
  "fs.sub-workspace-closed": [await refusal(() => safety.fs.readText("../top.txt")), await refusal(() => safety.fs.readText("../other/secret.txt")), await refusal(() => safety.fs.writeText("../x", "y"))],
};
