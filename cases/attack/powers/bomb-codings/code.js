const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each(["gzip", "deflate", "br", "zstd", "layers"].map((coding) => `http://api.example.com/${coding}`));
