return safety.fs.readText("missing.txt");
