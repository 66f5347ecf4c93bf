const text = async (url) => (await fetch(url)).text();
return { "guard.open.any": [await text("http://127.0.0.1/"), await text("http://10.0.0.5/"), await text("http://inside.example.com/")] };
