//! `safety.parser`: shapes, the calls on HTML, and faults.

use serde_json::{Value, json};

use crate::face::{call, reason, run};

#[track_caller]
fn check(script: &str, expected: Value) {
    assert_eq!(run(script), expected, "{script}");
}

const PAGE: &str = r#"const doc = safety.parser.html(`<!doctype html><html><head><title>
  A  page </title><style>p { color: red }</style></head><body class="top">
  <h1 id="head">Hello   <b>big</b> world</h1>
  <div class="list main"><p>one</p><p class="x">two<br>lines</p><a href="/rel" data-k="v1">rel</a>
  <a href="https://example.com/a?b=c#d" title="T &amp; U">abs</a></div>
  <ul><li>1</li><li class="x">2</li><li>3</li></ul><pre>a
 b</pre><script>var a = "<p>no</p>";</script></body></html>`);"#;

#[track_caller]
fn page(script: &str, expected: Value) {
    check(&format!("{PAGE} {script}"), expected);
}

#[test]
fn html_documents_answer_as_jsoup_does() {
    page("return doc.title()", json!("A page"));
    page("return doc.body().tagName()", json!("body"));
    page(
        "return doc.select('h1').first().text()",
        json!("Hello big world"),
    );
    page(
        "return doc.select('h1').first().ownText()",
        json!("Hello world"),
    );
    page(
        "return doc.select('.main').text()",
        json!("one two lines rel abs"),
    );
    page("return doc.select('ul').text()", json!("1 2 3"));
    page("return doc.select('pre').first().text()", json!("a\n b"));
    page("return doc.select('nothing').first()", json!(null));
    page(
        "return [doc.select('li').size(), doc.select('li').length, doc.select('li').get(1).text()]",
        json!([3, 3, "2"]),
    );
    page("return doc.select('li').eachText()", json!(["1", "2", "3"]));
    page(
        "return [...doc.select('li')].map((li) => li.text())",
        json!(["1", "2", "3"]),
    );
    page(
        "return doc.select('li').map((li) => li.text().length)",
        json!([1, 1, 1]),
    );
    page(
        "try { doc.select('li').get(9) } catch (e) { return e.name }",
        json!("RangeError"),
    );
    page(
        "return doc.select('body').text().includes('var a')",
        json!(false),
    );
    page(
        "return doc.select('script').first().data()",
        json!("var a = \"<p>no</p>\";"),
    );
}

#[test]
fn html_attributes_and_links() {
    page("return doc.select('a').first().attr('href')", json!("/rel"));
    page("return doc.select('a').first().attr('none')", json!(""));
    page("return doc.select('a').first().attr('abs:href')", json!(""));
    page(
        "return doc.select('a').get(1).attr('abs:href')",
        json!("https://example.com/a?b=c#d"),
    );
    page(
        "return doc.select('a').get(1).attr('title')",
        json!("T & U"),
    );
    page("return doc.select('h1').first().id()", json!("head"));
    page(
        "const d = doc.select('div').first(); return [d.className(), d.hasClass('main'), d.hasClass('no'), d.hasAttr('class')]",
        json!(["list main", true, false, true]),
    );
    page(
        "return doc.select('a').eachAttr('href')",
        json!(["/rel", "https://example.com/a?b=c#d"]),
    );
    check(
        "return safety.parser.html('<a href=x>', 'https://e.org/d/').select('a').attr('abs:href')",
        json!("https://e.org/d/x"),
    );
    check(
        "return safety.parser.html('<base href=\"https://b.org/\"><a href=x>').select('a').attr('abs:href')",
        json!("https://b.org/x"),
    );
}

#[test]
fn html_can_be_changed() {
    page(
        "doc.select('li.x').remove(); return doc.select('ul').html()",
        json!("<li>1</li><li>3</li>"),
    );
    page(
        "doc.select('ul').first().append('<li>4</li><li>5'); return doc.select('ul').first().text()",
        json!("1 2 3 4 5"),
    );
    page(
        "doc.select('li').first().after('<li>1b</li>'); return doc.select('li').eachText()",
        json!(["1", "1b", "2", "3"]),
    );
    page(
        "doc.select('li').first().before('text'); return doc.select('ul').html()",
        json!("text<li>1</li><li class=\"x\">2</li><li>3</li>"),
    );
    page(
        "doc.select('h1').first().attr('id', 'n\"'); return doc.select('h1').outerHtml()",
        json!("<h1 id=\"n&quot;\">Hello   <b>big</b> world</h1>"),
    );
    page(
        "doc.select('h1').first().text('<x>'); return doc.select('h1').outerHtml()",
        json!("<h1 id=\"head\">&lt;x&gt;</h1>"),
    );
    check(
        "const d = safety.parser.html('<table><tr><td>1</td></tr></table>'); d.select('tr').first().append('<td>2</td>'); return d.select('td').size()",
        json!(2),
    );
}

#[test]
fn html_is_plain_data_as_well() {
    check(
        "return safety.parser.html('<p id=a>x<b>y</b></p>')",
        json!({ "tag": "html", "attrs": {}, "text": "xy", "children": [
            { "tag": "head", "attrs": {}, "text": "", "children": [] },
            { "tag": "body", "attrs": {}, "text": "xy", "children": [
                { "tag": "p", "attrs": { "id": "a" }, "text": "xy", "children": [
                    { "tag": "b", "attrs": {}, "text": "y", "children": [] }] }] }] }),
    );
    page(
        "const h = doc.select('h1').first(); return [h.tag, h.attrs.id, `${h.text}`, h.text + '', h.text.length, h.text == 'Hello big world', h.text.toUpperCase()]",
        json!([
            "h1",
            "head",
            "Hello big world",
            "Hello big world",
            15,
            true,
            "HELLO BIG WORLD"
        ]),
    );
    page(
        "const u = doc.select('ul').first(); return [u.children.length, u.children[1].text(), u.children.map((c) => c.tag), u.children().size(), u.children().first().text()]",
        json!([3, "2", ["li", "li", "li"], 3, "1"]),
    );
    page(
        "const tags = []; const walk = (n) => { tags.push(n.tag); for (const c of n.children) walk(c); }; walk(doc.select('ul').first()); return tags.join()",
        json!("ul,li,li,li"),
    );
    page(
        "return Object.keys(doc.select('ul').first())",
        json!(["tag", "attrs"]),
    );
    page(
        "return [doc.select('li').first().parent().tag, doc.select('b').first().parents().size(), doc.select('html').first().parent() === doc]",
        json!(["ul", 3, true]),
    );
}

#[test]
fn selectors() {
    let cases = [
        ("li", 3),
        ("*", 19),
        (".x", 2),
        ("li.x", 1),
        ("#head", 1),
        ("h1#head", 1),
        ("[href]", 2),
        ("a[href]", 2),
        ("a[href='/rel']", 1),
        ("a[href=/rel]", 1),
        ("a[href*='example']", 1),
        ("a[href^=https]", 1),
        ("a[href$='#d']", 1),
        ("[class~=main]", 1),
        ("a[href!='/rel']", 1),
        ("div p", 2),
        ("div > p", 2),
        ("body > p", 0),
        ("p + p", 1),
        ("p ~ a", 2),
        ("h1, li", 4),
        ("li:first-child", 1),
        ("li:last-child", 1),
        ("li:nth-child(2)", 1),
        ("li:nth-child(odd)", 2),
        ("li:nth-child(2n+1)", 2),
        ("li:not(.x)", 2),
        ("div:has(p.x)", 1),
        ("div:has(> a)", 1),
        ("ul:has(a)", 0),
        ("p:contains(TWO)", 1),
        ("li:eq(0)", 1),
        ("li:gt(0)", 2),
        ("li:lt(1)", 1),
        ("[^data-]", 1),
        ("b:only-child", 1),
        ("p:first-of-type", 1),
        ("html > body.top", 1),
        ("LI", 3),
        ("a[data-k]", 1),
    ];
    for (selector, count) in cases {
        page(
            &format!("return doc.select({}).size()", json!(selector)),
            json!(count),
        );
    }
    for wrong in [
        "",
        "li[",
        "li:unknown",
        ">",
        "li >",
        "li,,p",
        ":nth-child(x)",
        "a[=x]",
        "!",
    ] {
        page(
            &format!(
                "try {{ return doc.select({}).size() }} catch (e) {{ return e.reason }}",
                json!(wrong)
            ),
            json!("invalid-selector"),
        );
    }
}

#[test]
fn html_that_is_odd_is_still_read() {
    check(
        "return safety.parser.html('').select('body').size()",
        json!(1),
    );
    check(
        "return safety.parser.html('<p>a<p>b').select('p').eachText()",
        json!(["a", "b"]),
    );
    check(
        "return safety.parser.html('<b><p>x</b>y</p>').body().html()",
        json!("<b></b><p><b>x</b>y</p>"),
    );
    check(
        "return safety.parser.html('<table>x<tr><td>1').body().html()",
        json!("x<table><tbody><tr><td>1</td></tr></tbody></table>"),
    );
    check(
        "return safety.parser.html('<noscript><p>shown</p></noscript>').select('p').size()",
        json!(1),
    );
    check(
        "return safety.parser.html('<template><p>in</p></template>').select('template p').size()",
        json!(1),
    );
    check(
        "return safety.parser.html('<p>\\ud800 ü 漢 🎉').text()",
        json!("\u{fffd} ü 漢 🎉"),
    );
    check(
        "return safety.parser.html('<svg><circle r=1 xlink:href=\"#a\"/></svg>').select('circle').attr('xlink:href')",
        json!("#a"),
    );
    check(
        "return safety.parser.html('<p __proto__=x constructor=y>').select('p').attr('constructor')",
        json!("y"),
    );
    check(
        "return safety.parser.html('<p>a&nbsp;b&#x200b;c</p>').text()",
        json!("a bc"),
    );
    check(
        "return safety.parser.html('<div>a</div><div>b</div><span>c</span>d').text()",
        json!("a b cd"),
    );
}

#[test]
fn trees_as_deep_as_allowed_can_be_walked() {
    check(
        "const doc = safety.parser.html('<div>'.repeat(500) + 'x');
         return [doc.select('div').size(), doc.select('div div > div').size(), doc.text(), doc.body().html().length, JSON.stringify(doc).length > 10000]",
        json!([500, 498, "x", 5501, true]),
    );
    check(
        "let at = safety.parser.xml('<a>'.repeat(500) + '</a>'.repeat(500)); let depth = 0; while (at) { at = at.children[0]; depth++; } return depth",
        json!(500),
    );
}

#[test]
fn xml_shapes() {
    check(
        "return safety.parser.xml('<?xml version=\"1.0\"?><r xmlns:n=\"u\" a=\"1 &lt; 2\"> t1 <n:c b=\"x\"/><!-- no --><![CDATA[<raw>]]> t2 &amp; &#65;<d>in</d></r>')",
        json!({ "tag": "r", "attrs": { "xmlns:n": "u", "a": "1 < 2" }, "text": "t1 <raw> t2 & A", "children": [
            { "tag": "n:c", "attrs": { "b": "x" }, "text": "", "children": [] },
            { "tag": "d", "attrs": {}, "text": "in", "children": [] }] }),
    );
}

#[test]
fn xml_that_is_wrong_is_refused() {
    let wrong = [
        "",
        "text",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>text",
        "<a x=1/>",
        "<a x='1' x='2'/>",
        "<a>&unknown;</a>",
        "</a>",
        "<a",
        "<1/>",
        "<a x='<'/>",
        "<a>&#0;</a>",
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
        "<!DOCTYPE lolz [<!ENTITY l 'lol'><!ENTITY m '&l;&l;&l;&l;'>]><lolz>&m;</lolz>",
    ];
    for text in wrong {
        assert_eq!(
            reason(call("parser.xml", json!({ "text": text }), &[])),
            "HELPER_RUNTIME parse-failed",
            "{text}"
        );
    }
    check(
        "try { safety.parser.xml('<!DOCTYPE a><a/>') } catch (e) { return [e.kind, e.reason, e.helper, e.message] }",
        json!([
            "HELPER_RUNTIME",
            "parse-failed",
            "safety.parser.xml",
            "a DOCTYPE is not allowed, at byte 0"
        ]),
    );
}

#[test]
fn csv_shapes() {
    check(
        "return safety.parser.csv('a,b\\r\\n1,\"x, \"\"y\"\"\\nz\"\\n\\n3,4,5\\n')",
        json!([["a", "b"], ["1", "x, \"y\"\nz"], ["3", "4", "5"]]),
    );
    check(
        "return safety.parser.csv('a,b,c\\n1,2\\n3,4,5,6', { header: true })",
        json!([{ "a": "1", "b": "2" }, { "a": "3", "b": "4", "c": "5" }]),
    );
    check(
        "return safety.parser.csv('a;b\\n1;2', { header: true, delimiter: ';x' })",
        json!([{ "a": "1", "b": "2" }]),
    );
    check(
        "return safety.parser.csv('a\u{ff1b}b', { delimiter: '\u{ff1b}' })",
        json!([["a", "b"]]),
    );
    check(
        "return safety.parser.csv('\u{feff}a,,\\n,')",
        json!([["a", "", ""], ["", ""]]),
    );
    check(
        "return [safety.parser.csv(''), safety.parser.csv('', { header: true }), safety.parser.csv('a', { header: true })]",
        json!([[], [], []]),
    );
    check(
        "return safety.parser.csv('a\\tb', { delimiter: '\\t' })",
        json!([["a", "b"]]),
    );
    check(
        "const [row] = safety.parser.csv('__proto__,x\\n1,2', { header: true }); return [Object.keys(row), Object.getPrototypeOf(row) === Object.prototype]",
        json!([["__proto__", "x"], true]),
    );
    for wrong in ["\"open", "a,\"b\"c", "\"a\"b\n"] {
        assert_eq!(
            reason(call("parser.csv", json!({ "text": wrong }), &[])),
            "HELPER_RUNTIME parse-failed",
            "{wrong}"
        );
    }
}

#[test]
fn yaml_scalars_are_those_of_version_one_one() {
    let text = "a: 1\nb: -2.5\nc: yes\nd: Off\ne: ~\nf: null\ng: 0x1F\nh: 010\ni: 1_000\nj: 1:30\nk: 1e3\nl: '1'\nm: \"x\\ty\"\nn: 2024-01-02\no: |\n  two\n  lines\np: >\n  one\n  line\nq: 0b101\nr: 1.5.2\ns: +12\nt: .5\nu: !!str 5\nv: !!int '7'\nw: 0o17\ny: 08\n";
    check(
        &format!("return safety.parser.yaml({})", json!(text)),
        json!({ "a": 1, "b": -2.5, "c": true, "d": false, "e": null, "f": null, "g": 31, "h": 8, "i": 1000, "j": 90, "k": 1000,
            "l": "1", "m": "x\ty", "n": "2024-01-02", "o": "two\nlines\n", "p": "one line\n", "q": 5, "r": "1.5.2", "s": 12, "t": 0.5,
            "u": "5", "v": 7, "w": "0o17", "y": "08" }),
    );
    check(
        "const y = safety.parser.yaml('a: .inf\\nb: [-.Inf, .nan]\\nc: {d: .inf}'); return [y.a === Infinity, y.b[0] === -Infinity, Number.isNaN(y.b[1]), y.c.d === Infinity]",
        json!([true, true, true, true]),
    );
    check(
        "return safety.parser.yaml('.nan') !== safety.parser.yaml('.nan')",
        json!(true),
    );
}

#[test]
fn yaml_shapes() {
    check(
        "return safety.parser.yaml('- 1\\n- [a, b]\\n- {c: d}')",
        json!([1, ["a", "b"], { "c": "d" }]),
    );
    check(
        "return safety.parser.yaml('base: &b {x: 1, y: 2}\\nown: {<<: *b, y: 3}\\nlist: [*b]')",
        json!({ "base": { "x": 1, "y": 2 }, "own": { "y": 3, "x": 1 }, "list": [{ "x": 1, "y": 2 }] }),
    );
    check(
        "return safety.parser.yaml('1: a\\ntrue: b\\n~: c')",
        json!({ "1": "a", "true": "b", "null": "c" }),
    );
    check(
        "return safety.parser.yaml('a: 1\\na: 2')",
        json!({ "a": 2 }),
    );
    check("return safety.parser.yaml('')", json!(null));
    check("return safety.parser.yaml('# only a comment')", json!(null));
    check(
        "return safety.parser.yaml('---\\na: 1\\n...')",
        json!({ "a": 1 }),
    );
    check(
        "return safety.parser.yaml('!!set {a, b}')",
        json!({ "a": null, "b": null }),
    );
    check(
        "return Object.getPrototypeOf(safety.parser.yaml('__proto__: {x: 1}')) === Object.prototype",
        json!(true),
    );
    let wrong = [
        "a: [",
        "a: 'x",
        "a: 1\n---\nb: 2",
        "!!python/object/apply:os.system ['ls']",
        "!!javax.script.ScriptEngineManager []",
        "!own x",
        "a: *none",
        "&a [*a]",
        "{[1]: 2}",
        "? {a: 1}\n: 2",
        "!!int x",
        "a: b: c",
        "<<: 5",
        "!!seq {a: 1}",
    ];
    for text in wrong {
        assert_eq!(
            reason(call("parser.yaml", json!({ "text": text }), &[])),
            "HELPER_RUNTIME parse-failed",
            "{text}"
        );
    }
}

#[test]
fn nothing_to_parse_is_missing_input() {
    for name in ["html", "xml", "csv", "yaml"] {
        check(
            &format!(
                "try {{ safety.parser.{name}() }} catch (e) {{ return [e.kind, e.reason, e.helper] }}"
            ),
            json!([
                "INVALID_INPUT",
                "missing-input",
                format!("safety.parser.{name}")
            ]),
        );
        check(
            &format!("try {{ safety.parser.{name}(null) }} catch (e) {{ return e.reason }}"),
            json!("missing-input"),
        );
    }
    assert_eq!(
        reason(call("parser.xml", json!({}), &[0xff])),
        "HELPER_RUNTIME parse-failed"
    );
    assert_eq!(
        call("parser.csv", json!({}), b"a").unwrap().0,
        json!({ "rows": [["a"]] })
    );
}
