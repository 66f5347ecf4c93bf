const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each(["http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://127.1/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.0.1/",
  "http://0/", "http://00000012.0.0.1/", "http://10.1/", "http://167772161/", "http://\u0661\u0662\u0667.0.0.1/", "http://\uff11\uff12\uff17.0.0.1/", "http://127\u30020\u30020\u30021/", "http://127.0.0.1./", "http://%31%32%37.0.0.1/"]);
