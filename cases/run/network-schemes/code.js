const tried = [];
for (const url of ["file:///etc/hosts", "ftp://127.0.0.1:9", "gopher://127.0.0.1:9", "not a url", ""]) {
  try { await fetch(url); } catch (error) { tried.push(`${url} ${error.kind} ${error.reason}`); }
}
return tried;
