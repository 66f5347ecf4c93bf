//! Texts made to break a parser: each ends in a named fault, in time.

use std::time::Instant;

use serde_json::json;

use crate::face::{call, reason};

/// The fault of a parser on a text, and that it did not take long to find.
#[track_caller]
fn bomb(operation: &str, text: String, expected: &str) {
    let start = Instant::now();
    let fault = reason(call(operation, json!({ "text": text }), &[]));
    assert_eq!(fault, expected, "{operation}");
    let seconds = start.elapsed().as_secs();
    assert!(seconds < 60, "{seconds} s for {operation}");
}

#[test]
fn nesting_bombs_end_as_too_deep() {
    bomb(
        "parser.html",
        "<div>".repeat(1_000_000),
        "HELPER_RUNTIME too-deep",
    );
    bomb(
        "parser.html",
        "<b><table>".repeat(200_000),
        "HELPER_RUNTIME too-large",
    );
    bomb(
        "parser.html",
        "<svg><g>".repeat(200_000),
        "HELPER_RUNTIME too-deep",
    );
    bomb(
        "parser.xml",
        "<a>".repeat(1_000_000),
        "HELPER_RUNTIME too-deep",
    );
    bomb(
        "parser.yaml",
        "[".repeat(1_000_000),
        "HELPER_RUNTIME too-deep",
    );
    bomb(
        "parser.yaml",
        "- ".repeat(1_000_000),
        "HELPER_RUNTIME too-deep",
    );
    bomb(
        "parser.yaml",
        (0..200)
            .map(|depth| format!("{}a:\n", " ".repeat(depth)))
            .collect(),
        "HELPER_RUNTIME too-deep",
    );
    let aliases = (0..120).fold("a0: &a0 [x]\n".to_owned(), |text, at| {
        text + &format!("a{}: &a{} [*a{at}]\n", at + 1, at + 1)
    });
    bomb("parser.yaml", aliases, "HELPER_RUNTIME too-deep");
}

#[test]
fn growing_bombs_end_as_too_large() {
    let laughs = (0..12).fold(
        "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n".to_owned(),
        |text, at| {
            let nine = vec![format!("*a{at}"); 9].join(",");
            text + &format!("a{}: &a{} [{nine}]\n", at + 1, at + 1)
        },
    );
    bomb("parser.yaml", laughs, "HELPER_RUNTIME too-large");
    let long = format!(
        "a: &a {}\nb: [{}]",
        "x".repeat(1_000_000),
        vec!["*a"; 900].join(",")
    );
    bomb("parser.yaml", long, "HELPER_RUNTIME too-large");
    bomb(
        "parser.yaml",
        format!("a: &a 1\nb: [{}]", vec!["*a"; 2_000].join(",")),
        "HELPER_RUNTIME too-large",
    );
    bomb(
        "parser.yaml",
        "- 1\n".repeat(300_000),
        "HELPER_RUNTIME too-large",
    );
    bomb(
        "parser.csv",
        ",".repeat(1_000_000),
        "HELPER_RUNTIME too-large",
    );
    bomb(
        "parser.xml",
        format!("<a>{}</a>", "<b/>".repeat(300_000)),
        "HELPER_RUNTIME too-large",
    );
    bomb(
        "parser.html",
        "<br>".repeat(500_000),
        "HELPER_RUNTIME too-large",
    );
    for operation in ["parser.html", "parser.xml", "parser.csv", "parser.yaml"] {
        bomb(
            operation,
            "x".repeat(11 * 1024 * 1024),
            "HELPER_RUNTIME too-large",
        );
    }
    // A long attribute on an element that each paragraph opens again.
    let reopened = format!(
        "<p><b title=\"{}\">{}",
        "x".repeat(1_000_000),
        "<p>y</p>".repeat(10_000)
    );
    bomb("parser.html", reopened, "HELPER_RUNTIME too-large");
    let many: String = (0..400).map(|at| format!("<b x{at}>")).collect();
    bomb(
        "parser.html",
        format!("<p>{many}{}", "<p>x".repeat(100_000)),
        "HELPER_RUNTIME too-large",
    );
}

#[test]
fn attribute_floods_end_in_time() {
    let flood: String = (0..1_000_000).map(|at| format!("a{at} ")).collect();
    bomb(
        "parser.html",
        format!("<p {flood}>"),
        "HELPER_RUNTIME too-large",
    );
    let packed: String = (0..500_000).map(|at| format!("a{at}=\"\"")).collect();
    bomb(
        "parser.html",
        format!("<p {packed}>"),
        "HELPER_RUNTIME too-large",
    );
    let many: String = (0..20_000).map(|at| format!("a{at} ")).collect();
    bomb(
        "parser.html",
        format!("<p {many}>").repeat(30),
        "HELPER_RUNTIME too-large",
    );
    let xml: String = (0..300_000).map(|at| format!(" a{at}=''")).collect();
    bomb(
        "parser.xml",
        format!("<a{xml}/>"),
        "HELPER_RUNTIME too-large",
    );
    // What real pages hold is not mistaken for one: a large image in the text.
    let image = "iVBORw0KGgo/AAA+".repeat(60_000);
    let (value, _) = call(
        "parser.html",
        json!({ "text": format!("<img src=\"data:image/png;base64,{image}\">") }),
        &[],
    )
    .unwrap();
    assert_eq!(value["nodes"].as_array().unwrap().len(), 4);
    let words = "word ".repeat(20_000);
    call(
        "parser.html",
        json!({ "text": format!("<!-- {words} --><p>{words}") }),
        &[],
    )
    .unwrap();
}

/// Text from a few scraps, the same in every run.
fn soup(scraps: &[&str], seed: u64) -> String {
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let mut text = String::new();
    for _ in 0..40 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 33).unwrap() % scraps.len();
        text.push_str(scraps[at]);
    }
    text
}

const HTML: &str = "<p>|</p>|<b a=1>|</b>|<table>|<tr>|<td>|</table>|<select>|<option>|<template>|</template>|<svg>|<math>|<mi>\
    |<annotation-xml encoding='text/html'>|<foreignObject>|</svg>|<frameset>|<form>|</form>|<a href=x>|</a>|<body>|<html x=y>|<head>\
    |<title>|</title>|<script>|</script>|<textarea>|<!--|-->|<![CDATA[|]]>|<!doctype html>|text|&amp;|&#0;|&notit;|\0|\u{fffd}|<|>|<li>\
    |<plaintext>|<caption>|<colgroup>|<nobr>|<button>|<input type=hidden>";
const CONTEXTS: &str = "body|table|tr|td|select|template|svg|title|script|html|head|frameset|plaintext|textarea||#fragment|\0";
const YAML: &str = "a;: ;- ;\n;  ;[;];{;};,;&a ;*a;!!str ;!x ;|;>;\n---\n;...;';\";#;?;<<: ;%YAML 1.1\n;\t;1;~;\\;\u{85};@;`;|+2\n";
const XML: &str = "<a>|</a>|<a |b='c'|/>|>|<|&|&amp;|&#x41;|<![CDATA[|]]>|<!--|-->|<?x |?>|<!DOCTYPE|text| |\"|=|\0";

#[test]
fn no_soup_stops_a_parser() {
    let html: Vec<&str> = HTML.split('|').collect();
    for (seed, context) in (0..1500).zip(CONTEXTS.split('|').cycle()) {
        let text = soup(&html, seed);
        call("parser.html", json!({ "text": text }), &[]).unwrap();
        call(
            "parser.html",
            json!({ "text": text, "context": context }),
            &[],
        )
        .unwrap();
    }
    let yaml: Vec<&str> = YAML.split(';').collect();
    let xml: Vec<&str> = XML.split('|').collect();
    let csv = ["a", ",", "\"", "\n", "\r", " ", "\u{feff}"];
    for seed in 0..3000 {
        drop(call(
            "parser.yaml",
            json!({ "text": soup(&yaml, seed) }),
            &[],
        ));
        drop(call("parser.xml", json!({ "text": soup(&xml, seed) }), &[]));
        drop(call(
            "parser.csv",
            json!({ "text": soup(&csv, seed), "header": seed % 2 == 0 }),
            &[],
        ));
    }
}
