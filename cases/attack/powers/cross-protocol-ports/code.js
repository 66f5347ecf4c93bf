const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each([22, 25, 53, 110, 143, 389, 587, 6379, 6667, 11211].map((port) => `http://api.example.com:${port}/`), { method: "POST", body: "HELO x\r\nFLUSHALL\r\n" });
