const headers = { Authorization: `Bearer ${token}`, Cookie: "session=1", "X-Key": token, "X-Encoded": btoa(token), "X-Basic": `Basic ${btoa(`user:${token}`)}` };
const said = {};
for (const path of ["away", "home"]) {
  const got = (await fetch(`http://api.example.com/${path}`, { headers })).json().headers;
  for (const name of Object.keys(headers)) said[`${path} ${name}`] = got[name.toLowerCase()] === undefined ? "gone" : "sent";
}
return said;
