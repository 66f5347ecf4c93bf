return { "fs.workspace": safety.fs.workspace(), "fs.readRoots": safety.fs.readRoots() };
