const page = safety.parser.html('<html><head><title>T</title></head><body><div id="m" class="x y"><a href="/p">One</a> <a>Two</a></div></body></html>');
const links = page.select("#m a");
return { title: page.title(), count: links.size(), first: links.first().text(), href: links.get(0).attr("href"), missing: links.get(1).attr("href"), none: page.select("p").first(), text: page.body().text() };
