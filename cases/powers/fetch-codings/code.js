const text = async (path) => (await fetch(`http://api.example.com/${path}`)).text();
return {
  "fetch.coding.gzip": await text("gzip"),
  "fetch.coding.deflate": await text("deflate"),
  "fetch.coding.br": await text("br"),
  "fetch.coding.zstd": await text("zstd"),
  "fetch.coding.twice": await refusal(() => text("twice")),
  "fetch.coding.lie": await refusal(() => text("lies")),
};
