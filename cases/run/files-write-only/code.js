safety.fs.writeText("note.txt", "hello");
return [typeof safety.fs.readText, typeof safety.fs.writeText];
