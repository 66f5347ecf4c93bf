const fs = safety.fs;
fs.writeText("a.txt", "x");
fs.copy("a.txt", "b.txt");
fs.move("b.txt", "c/d.txt");
const before = fs.find(".", "*");
return { before, gone: fs.delete("a.txt"), again: fs.delete("a.txt"), removed: fs.deleteDir("c"), after: fs.list(".") };
