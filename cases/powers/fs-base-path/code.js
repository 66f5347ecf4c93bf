const { fs } = safety;
return {
  "fs.base-path": [fs.workspace(), fs.readRoots(), fs.readText("in.txt"), fs.writeText("out.txt", "x")],
  "fs.base-path.closed": [await refusal(() => fs.readText("../beside.txt")), await refusal(() => fs.writeText("../x.txt", "x"))],
};
