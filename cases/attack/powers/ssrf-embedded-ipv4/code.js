const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each(["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::a00:1", "64:ff9b:1::a00:1",
  "2002:a00:1::", "2002:7f00:1::1", "2001:0:1:2:3:4:80ff:fffe", "2001:db8::5efe:10.0.0.1", "fe80::5efe:127.0.0.1", "::1", "::"].map((host) => `http://[${host}]/`));
