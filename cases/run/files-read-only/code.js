return [typeof safety.fs.readText, typeof safety.fs.writeText];
