const { fs } = safety;
const ended = fs.grep("(a+)+$", "a.txt").length === 0 && fs.grep("(a|aa)+$", "a.txt").length === 0;
return {
  "look-around": ended ? await refusal(() => fs.grep("(?=a)a", "a.txt")) : "matched",
  "back-reference": await refusal(() => fs.grep("(a)\\1", "a.txt")),
  "a program too large": await refusal(() => fs.grep("(((a{1,100}){1,100}){1,100}){1,100}", "a.txt")),
  "in searchInFiles": await refusal(() => fs.searchInFiles(".", "*", "(?<=a)b")),
  "in cut": await refusal(() => fs.cut("a.txt", { fields: [1], delimiter: "(?=a)", regex: true })),
  "too deep": await refusal(() => fs.grep("(".repeat(200) + "a" + ")".repeat(200), "a.txt")),
};
