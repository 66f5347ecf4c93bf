safety.fs.writeText("notes/a.txt", "one\ntwo\nthree\n");
safety.fs.appendText("notes/a.txt", "four\n");
const edited = safety.fs.editText("notes/a.txt", "two", "2").replacements;
return { edited, text: safety.fs.readText("notes/a.txt"), list: safety.fs.list("notes"), count: safety.fs.lineCount("notes/a.txt"), slice: safety.fs.slice("notes/a.txt", 1, 3), grep: safety.fs.grep("^t", "notes/a.txt", { numbered: true }), found: safety.fs.find(".", "*.txt"), search: safety.fs.searchInFiles(".", "*.txt", "four"), sorted: safety.fs.sort("notes/a.txt", { reverse: true }) };
