const tried = [];
for (const path of ["../x", "/etc/passwd", "a/../../x", "", "a\0b"]) {
  try { safety.fs.readText(path); tried.push("read " + path); } catch (error) { tried.push(`${error.kind} ${error.reason} ${error.helper}`); }
}
return tried;
