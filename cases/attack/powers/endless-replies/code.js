const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return { ...await each(["body", "head", "nothing", "half", "lie", "loop"].map((path) => `http://api.example.com/${path}`)), ...await each(["http://silent.example.com/"]) };
