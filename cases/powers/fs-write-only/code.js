return { "fs.write-group": Object.keys(safety.fs), "fs.write-only": [typeof safety.fs.readText, safety.fs.writeText("a.txt", "x")] };
