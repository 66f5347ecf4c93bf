const reply = await fetch("https://api.example.com/page");
return { "fetch.https": [reply.status, reply.text(), reply.url] };
