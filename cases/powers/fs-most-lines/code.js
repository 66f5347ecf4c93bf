const { fs } = safety;
return {
  "fs.grep.limit-most": [fs.grep("line", "many.txt").length, fs.grep("line", "many.txt", { limit: 11000 }).length],
  "fs.searchInFiles.limit-most": [fs.searchInFiles(".", "*", "line").length, fs.searchInFiles(".", "*", "line", { limit: 5000 }).length],
};
