let called;
try { await fetch("http://api.example.com/"); } catch (error) { called = `${error.name}: ${error.message}`; }
return { "fetch.blocked.absent": typeof fetch, "fetch.blocked.call": called, "fetch.blocked.global": "fetch" in globalThis };
