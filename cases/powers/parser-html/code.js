const page = safety.parser.html(`<!doctype html><html><head><title> The  page </title></head><body class="x">
  <div id="main" class="box wide"><p>One <b>bold</b></p><p class="note">Two</p></div>
  <a href="/rel" data-kind="nav-link">Rel</a><a href="https://other.example/abs">Abs</a><a>None</a>
</body></html>`);
const links = page.select("a");
const edit = safety.parser.html("<ul><li>1</li><li>2</li></ul>");
edit.select("li").first().after("<li>between</li>");
edit.select("ul").first().append("<li>last</li>");
const removed = safety.parser.html("<p>keep</p><script>drop()</script><style>x</style>");
removed.select("script, style").remove();
const count = (selector) => page.select(selector).size();
return {
  "html.title": page.title(),
  "html.body": page.body().attr("class"),
  "html.select": [count("p"), count(".note"), count("#main"), count("[href]"), count("[data-kind*='link']"), count("div.box"), count("a[href]"), count("div > p"), count("p, a")],
  "html.list.size": links.size(),
  "html.list.get": links.get(1).text(),
  "html.list.first": links.first().text(),
  "html.list.first-null": page.select("table").first(),
  "html.list.remove": removed.body().text(),
  "html.element.select": page.select("#main").first().select("p").size(),
  "html.element.text": page.select("#main").first().text(),
  "html.element.attr": links.first().attr("href"),
  "html.element.attr-absent": links.get(2).attr("href"),
  "html.element.attr-abs": [links.get(0).attr("abs:href"), links.get(1).attr("abs:href")],
  "html.element.after-append": edit.select("li").eachText(),
  "html.element.html": page.select("#main").first().html(),
  "html.element.outerHtml": page.select(".note").first().outerHtml(),
  "html.plain": (({ tag, attrs, text, children }) => [tag, attrs, `${text}`, children.length])(page.select("#main").first()),
  "html.iterable": Array.from(links, (link) => link.text()),
  "html.missing-input": await refusal(() => safety.parser.html()),
};
