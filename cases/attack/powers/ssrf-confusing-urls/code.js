const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each(["http://api.example.com@10.0.0.1/", "http://api.example.com:80@127.0.0.1/", "http://10.0.0.1\\@api.example.com/", "http://10.0.0.1#@api.example.com/", "http://10.0.0.1?@api.example.com/",
  "http://10.0.0.1:80\\.api.example.com/", "http:\\\\10.0.0.1\\api.example.com", "http:/10.0.0.1/api.example.com", "http:10.0.0.1", "\t h\nttp://10.0.0.1/", "http://api.example.com%00.evil.example/", "http://api.example.com%2f@10.0.0.1/", "http://[api.example.com]/", "http://api.example.com..evil.example/"]);
