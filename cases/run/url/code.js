const url = new URL("../b?x=1&x=2#h", "https://user.example:8443/a/c");
url.searchParams.append("y", "é z");
return { href: url.href, host: url.host, all: url.searchParams.getAll("x"), pairs: [...new URLSearchParams("a=1&b=2")] };
