const each = async (urls, init) => {
  const said = {};
  for (const url of urls) said[url] = await refusal(() => fetch(url, init));
  return said;
};

return each(["http://\u0430pi.example.com/", "http://api.example.com.evil.example/", "http://api-example.com/", "http://apiexample.com/", "http://xapi.example.com/", "http://api.example.c\u043em/", "http://api.examp\u0142e.com/", "http://badexample.org/", "http://example.org.evil.example/", "http://xn--pi-7kc.example.com/"]);
