const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each(["private", "loopback", "metadata", "last", "six", "mapped", "nat64", "crowd"].map((name) => `http://${name}.example.com/`));
