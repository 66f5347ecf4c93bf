const said = {};
for (let page = 0; page < 22; page++) said[page] = await refusal(() => fetch(`http://api.example.com/${page}`, { method: "POST", body: "x" }));
return said;
