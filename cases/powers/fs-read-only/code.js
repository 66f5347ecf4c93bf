const names = Object.keys(safety.fs);
return { "fs.read-group": names, "fs.not-granted": ["writeText", "appendText", "editText", "copy", "move", "delete", "deleteDir"].map((name) => typeof safety.fs[name]) };
