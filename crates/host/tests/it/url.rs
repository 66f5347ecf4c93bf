//! `URL` and `URLSearchParams`, as the WHATWG standard has them.

use serde_json::{Value, json};

use crate::face::{call, reason, run};

#[track_caller]
fn check(script: &str, expected: Value) {
    assert_eq!(run(script), expected, "{script}");
}

#[test]
fn parts_of_a_url() {
    check(
        "const u = new URL('https://u:p@Example.COM:8080/a/../b c?x=1&y=%20#h'); return [u.href, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin, String(u), JSON.stringify(u)]",
        json!([
            "https://u:p@example.com:8080/b%20c?x=1&y=%20#h",
            "https:",
            "u",
            "p",
            "example.com:8080",
            "example.com",
            "8080",
            "/b%20c",
            "?x=1&y=%20",
            "#h",
            "https://example.com:8080",
            "https://u:p@example.com:8080/b%20c?x=1&y=%20#h",
            "\"https://u:p@example.com:8080/b%20c?x=1&y=%20#h\""
        ]),
    );
    check(
        "return new URL('../c?q', 'https://e.org/a/b/').href",
        json!("https://e.org/a/c?q"),
    );
    check(
        "return new URL('//cdn.org/x', new URL('http://e.org')).href",
        json!("http://cdn.org/x"),
    );
    check(
        "return [new URL('mailto:a@b.c').origin, new URL('http://e.org:80').port, new URL('http://0x7f.1/').hostname, new URL('http://ü.de').hostname]",
        json!(["null", "", "127.0.0.1", "xn--tda.de"]),
    );
    check(
        "return [URL.canParse('x'), URL.canParse('x', 'http://e.org'), URL.parse('x'), URL.parse('x:y').href]",
        json!([false, true, null, "x:y"]),
    );
}

#[test]
fn setters_follow_the_standard() {
    check(
        "const u = new URL('http://e.org/a?b#c'); u.protocol = 'https'; u.host = 'x.org:81'; u.pathname = 'p q'; u.search = 'r=1'; u.hash = ''; u.username = 'me'; u.password = 's'; return u.href",
        json!("https://me:s@x.org:81/p%20q?r=1"),
    );
    check(
        "const u = new URL('http://e.org:81/'); u.port = 'x'; u.port = '99999'; u.hostname = ''; u.protocol = 'data'; return u.href",
        json!("http://e.org:81/"),
    );
    check(
        "const u = new URL('http://e.org'); u.port = 8080; u.href = 'https://f.org/?a=1'; return [u.href, u.searchParams.get('a')]",
        json!(["https://f.org/?a=1", "1"]),
    );
    check(
        "const u = new URL('http://e.org'); try { u.href = 'no' } catch (e) { return [e.name, e.reason, u.href] }",
        json!(["TypeError", "invalid-url", "http://e.org/"]),
    );
    check(
        "const u = new URL('http://e.org'); try { u.origin = 'x'; } catch { } return u.origin",
        json!("http://e.org"),
    );
}

#[test]
fn search_params_are_live() {
    check(
        "const u = new URL('http://e.org/?a=1&a=2&b=3#h'); const p = u.searchParams; p.append('c', 'x y&z'); p.delete('b'); p.set('a', 'n'); return [u.href, p.size]",
        json!(["http://e.org/?a=n&c=x+y%26z#h", 2]),
    );
    check(
        "const u = new URL('http://e.org/?a=1'); u.search = '?z=9'; return [u.searchParams.get('z'), u.searchParams.get('a'), u.searchParams === u.searchParams]",
        json!(["9", null, true]),
    );
    check(
        "const u = new URL('http://e.org/?a=1'); u.searchParams.delete('a'); return u.href",
        json!("http://e.org/"),
    );
}

#[test]
fn search_params_of_every_kind() {
    check(
        "return [new URLSearchParams('?a=1&b=%C3%BC+x&&c').toString(), new URLSearchParams([['a', 1], ['a', 2]]).getAll('a'), new URLSearchParams({ x: 'y z' }).toString(), new URLSearchParams(new URLSearchParams('q=1')).get('q'), new URLSearchParams(new Map([['k', 'v']])).get('k'), new URLSearchParams().toString(), new URLSearchParams(undefined).size]",
        json!(["a=1&b=%C3%BC+x&c=", ["1", "2"], "x=y+z", "1", "v", "", 0]),
    );
    check(
        "const p = new URLSearchParams('b=1&a=2&b=0'); p.sort(); return [[...p], [...p.keys()], [...p.values()], p.has('a'), p.has('a', '3'), p.get('none')]",
        json!([
            [["a", "2"], ["b", "1"], ["b", "0"]],
            ["a", "b", "b"],
            ["2", "1", "0"],
            true,
            false,
            null
        ]),
    );
    check(
        "const out = []; new URLSearchParams('a=1').forEach((value, name) => out.push(name + value)); return out",
        json!(["a1"]),
    );
    check(
        "const p = new URLSearchParams('a=1&a=2&b=3'); p.delete('a', '1'); return p.toString()",
        json!("a=2&b=3"),
    );
    check(
        "return [new URLSearchParams('a=%ff%zz%e4%b8').get('a'), new URLSearchParams({ a: \"~!'()*-._\" }).toString(), new URLSearchParams({ a: '\\ud800' }).toString()]",
        json!([
            "\u{fffd}%zz\u{fffd}",
            "a=%7E%21%27%28%29*-._",
            "a=%EF%BF%BD"
        ]),
    );
    check(
        "try { new URLSearchParams([['a']]) } catch (e) { return e.name }",
        json!("TypeError"),
    );
}

#[test]
fn faults() {
    check(
        "try { new URL() } catch (e) { return [e.name, e.kind, e.reason] }",
        json!(["TypeError", "INVALID_INPUT", "missing-input"]),
    );
    check(
        "try { new URL('nope') } catch (e) { return [e.name, e.kind, e.reason] }",
        json!(["TypeError", "INVALID_INPUT", "invalid-url"]),
    );
    check(
        "try { URL('http://e.org') } catch (e) { return e.name }",
        json!("TypeError"),
    );
    check(
        "try { URLSearchParams('a') } catch (e) { return e.name }",
        json!("TypeError"),
    );
    assert_eq!(
        reason(call("url.parse", json!({}), &[])),
        "INVALID_INPUT missing-input"
    );
    assert_eq!(
        reason(call(
            "url.parse",
            json!({ "input": "x".repeat(2_000_000) }),
            &[]
        )),
        "INVALID_INPUT too-large"
    );
    assert_eq!(
        reason(call(
            "url.parse",
            json!({ "input": "x", "base": "x".repeat(2_000_000) }),
            &[]
        )),
        "INVALID_INPUT too-large"
    );
    assert_eq!(
        reason(call(
            "url.set",
            json!({ "href": "http://e.org", "name": "size", "value": "x" }),
            &[]
        )),
        "INVALID_INPUT unknown-part"
    );
    assert_eq!(
        call(
            "url.set",
            json!({ "href": "none", "name": "port", "value": "1" }),
            &[]
        )
        .unwrap()
        .0,
        Value::Null
    );
}
