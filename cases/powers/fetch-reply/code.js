const reply = await fetch("http://api.example.com/json?q=1");
const bytes = await fetch("http://api.example.com/bytes");
return {
  "fetch.awaited": typeof reply.text,
  "fetch.then": await fetch("http://api.example.com/json").then((later) => later.status),
  "fetch.reply.status": reply.status,
  "fetch.reply.ok": reply.ok,
  "fetch.reply.url": reply.url,
  "fetch.reply.truncated": reply.truncated,
  "fetch.reply.nextStartIndex": reply.nextStartIndex,
  "fetch.reply.contentType": reply.contentType,
  "fetch.reply.contentType-null": bytes.contentType,
  "fetch.reply.headers-get": [reply.headers.get("Content-Type"), reply.headers.get("CONTENT-TYPE")],
  "fetch.reply.headers-get-joined": reply.headers.get("x-many"),
  "fetch.reply.headers-get-null": reply.headers.get("x-none"),
  "fetch.reply.text": [reply.text(), await reply.text()],
  "fetch.reply.json": [reply.json().a[1], (await reply.json()).a[0]],
  "fetch.reply.arrayBuffer": [Array.from(new Uint8Array(bytes.arrayBuffer())), (await bytes.arrayBuffer()).byteLength],
};
