const tried = [];
for (const host of ["127.0.0.1", "127.1", "[::1]", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "a.localhost", "[::ffff:127.0.0.1]", "[::127.0.0.1]"]) {
  try { await fetch(`http://${host}:9/`); tried.push([host, "reached"]); } catch (error) { tried.push([host, error.kind, error.reason]); }
}
return tried.map((row) => row.join(" "));
