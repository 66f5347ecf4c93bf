//! What `check`, policy resolution, rules and masking cost. `cargo xtask bench` runs it.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should stop")]

use std::fmt::Write as _;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use model::caller::{Caller, Origin};
use model::config::Config;
use model::document::environment::Environment;
use model::document::json::Lines;
use model::document::safety::Source;
use model::document::{self, Document};
use model::govern::rules::RuleInput;
use model::govern::trust::{TrustOutcome, TrustRecord, TrustState, evaluate};
use model::policy::assessment::assess;
use model::policy::risk::{Level, rate};
use model::policy::{Baseline, resolve};
use model::record::mask::Masker;

fn main() {
    divan::main();
}

/// A file of as many ordinary documents, about 1.2 KB each.
fn documents(count: usize) -> String {
    let code =
        "const reply = await fetch(url);\\nif (!reply.ok) throw new Error('no');\\n".repeat(8);
    let mut text = String::from("[");
    for index in 0..count {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}
  {{
    "toolId": "id-{index}", "name": "tool{index}", "description": "Fetches page {index}. Returns {{text}}.",
    "category": "WEB", "tags": ["util"],
    "params": [
      {{"name": "url", "type": "STRING", "required": true, "testValue": "https://example.com"}},
      {{"name": "limit", "type": "INTEGER", "required": false, "testValue": "10"}}
    ],
    "staticVariables": [{{"key": "${{API_KEY}}"}}],
    "code": "{code}", "codeType": "Javascript",
    "sandboxOverrides": {{"networkMode": "allowlist", "hostsAllow": ["example.com", "*.example.org"]}},
    "humanInTheLoop": {{"mode": "REQUIRED"}}, "draft": false
  }}"#
        );
    }
    text.push_str("\n]");
    text
}

fn check(text: &str) -> usize {
    let lines = Lines::new(text);
    let baseline = Baseline::closed();
    let environment = Environment::empty();
    let items = document::parse(text).items;
    let usable = |item| {
        assess(item, &lines, &baseline, &environment, Source::User)
            .usable
            .is_some()
    };
    items
        .into_iter()
        .filter_map(|item| usable(item).then_some(()))
        .count()
}

/// Everything `ringfence check` does but reading and printing.
#[divan::bench(args = [1, 1_000])]
fn check_documents(bencher: Bencher<'_, '_>, count: usize) {
    let text = documents(count);
    assert_eq!(check(&text), count);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| check(black_box(&text)));
}

/// The floor: the same text read into plain values by `serde_json`.
#[divan::bench(args = [1, 1_000])]
fn serde_json_alone(bencher: Bencher<'_, '_>, count: usize) {
    let text = documents(count);
    let read = || serde_json::from_str::<serde_json::Value>(black_box(&text)).unwrap();
    bencher.counter(BytesCount::of_str(&text)).bench(read);
}

fn one() -> Document {
    document::parse(&documents(1))
        .items
        .pop()
        .and_then(|item| item.document)
        .unwrap()
}

#[divan::bench]
fn resolve_and_rate(bencher: Bencher<'_, '_>) {
    let document = one();
    let baseline = Baseline::closed();
    bencher.bench(|| {
        let policy = resolve(&baseline, black_box(&document.sandbox_overrides)).unwrap();
        rate(&baseline, &document.sandbox_overrides, &policy)
    });
}

#[divan::bench]
fn digest(bencher: Bencher<'_, '_>) {
    let document = one();
    bencher.bench(|| document::digest::of_document(black_box(&document)).unwrap());
}

/// Rules of every kind: by tool, by caller, by action, by badge, with conditions
/// on arguments. A third of them are about the call that is decided.
fn rules(count: usize) -> String {
    let mut text = String::from("[callers.ann]\nlevel = 'standard'\nautonomy = 'full'\n");
    for index in 0..count {
        let rest = match index % 6 {
            0 => {
                "tools = ['tool*']\nwhen = 'args.limit > 1000 && args.url.startsWith(\"https://\")'"
            }
            1 => "tools = ['payment.*']\nwhen = 'args.amount > 1000'",
            2 => "callers = ['bob', 'bot-*']",
            3 => "actions = ['deployment', 'database_write']",
            4 => "risk = 'L0-L3'\nwhen = 'args.url.contains(\"..\") || time.hour > 24'",
            _ => "categories = ['file', 'terminal']",
        };
        let _ = writeln!(text, "[[rule]]\nid = 'r{index}'\neffect = 'deny'\n{rest}");
    }
    text
}

/// One decision. None of the rules holds, so every one is looked at to its end.
#[divan::bench(args = [0, 10, 100, 1_000])]
fn decide(bencher: Bencher<'_, '_>, count: usize) {
    let config = Config::parse(&rules(count)).unwrap();
    let document = one();
    let caller = Caller::named("ann");
    let rights = config.access.rights(&caller, document.category.as_deref());
    let baseline = Baseline::closed();
    let policy = rights.narrow(resolve(&baseline, &document.sandbox_overrides).unwrap());
    let risk = rate(&baseline, &document.sandbox_overrides, &policy);
    let raw = serde_json::json!({ "url": "https://example.com/a/b", "limit": 10 });
    let arguments = document::params::check(&document.params, &raw).unwrap();
    let asked = RuleInput {
        caller: &caller,
        rights: &rights,
        origin: Origin::Mcp,
        document: &document,
        arguments: &arguments,
        policy: &policy,
        risk: &risk,
        body: model::govern::rules::BodyFacts::sandboxed(),
        at_ms: 1_794_799_200_000,
    };
    assert_eq!(config.rules.decide(&asked).rule, None);
    bencher.bench(|| config.rules.decide(black_box(&asked)));
}

/// What holds for a caller, from the operator's file.
#[divan::bench]
fn rights(bencher: Bencher<'_, '_>) {
    let config = Config::parse(&rules(0)).unwrap();
    let caller = Caller::named("ann");
    bencher.bench(|| config.access.rights(black_box(&caller), Some("WEB")));
}

/// One evaluation of a caller's trust over as many attempts as are looked back on.
#[divan::bench(args = ["weighted", "per_category", "milestone"])]
fn trust(bencher: Bencher<'_, '_>, strategy: &str) {
    let config = Config::parse(&format!("[trust]\nstrategy = '{strategy}'\n")).unwrap();
    let begun = TrustState::initial(&config.trust, 0);
    let record = |number: i64| TrustRecord {
        at_ms: number * 500_000,
        tool: format!("tool{}", number % 37),
        category: Some(if number % 2 == 0 { "WEB" } else { "FILE" }.to_owned()),
        risk: Level::L3,
        outcome: match number % 50 {
            0 => TrustOutcome::Failed,
            _ => TrustOutcome::Done,
        },
    };
    let records: Vec<_> = (1..=10_000).map(record).collect();
    let evaluated = || {
        evaluate(
            &config.trust,
            &begun,
            black_box(&records),
            &[],
            6_000_000_000,
        )
    };
    assert!(!evaluated().is_empty());
    bencher.bench(evaluated);
}

/// Reading rules, conditions included.
#[divan::bench(args = [100])]
fn load_rules(bencher: Bencher<'_, '_>, count: usize) {
    let text = rules(count);
    bencher.bench(|| Config::parse(black_box(&text)).unwrap());
}

fn secrets(count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("sk-{index:04}-Vq8/zR+t w{}", index * 7919))
        .collect()
}

/// Making the masker of one call.
#[divan::bench(args = [2, 200])]
fn masker_of(bencher: Bencher<'_, '_>, count: usize) {
    let secrets = secrets(count);
    bencher.bench(|| Masker::new(secrets.iter().map(String::as_str)).unwrap());
}

/// One megabyte of text with a secret every few kilobytes.
#[divan::bench(args = [2, 200])]
fn mask_one_megabyte(bencher: Bencher<'_, '_>, count: usize) {
    let secrets = secrets(count);
    let masker = Masker::new(secrets.iter().map(String::as_str)).unwrap();
    let line = "The quick brown fox jumps over the lazy dog; sk-not a secret; 0123456789. ";
    let mut text = String::new();
    while text.len() < 1 << 20 {
        text.push_str(&line.repeat(40));
        text.push_str(secrets.get(text.len() % count).unwrap());
    }
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| masker.text(black_box(&text)));
}

/// One megabyte of text that is nearly all escapes, entities or base64: the dearest
/// there is.
#[divan::bench(args = ["percent", "json", "html", "mixed", "base64", "folded", "tokens", "hex"])]
fn mask_dense_megabyte(bencher: Bencher<'_, '_>, kind: &str) {
    let secrets = secrets(2);
    let masker = Masker::new(secrets.iter().map(String::as_str)).unwrap();
    let line = match kind {
        "percent" => "q=The%20quick%20brown%20fox%2C%20jumps%20over%3A%20the%20lazy%20dog%3B&",
        "json" => r#"{\"name\":\"value \u00e4\",\"list\":[\"a\/b\",\"c\\n\"],\"x\":\"y\"}\n"#,
        "html" => "&lt;a href=&quot;x&amp;y&#39;s&quot;&gt;link &amp; more&lt;/a&gt;&nbsp;",
        "mixed" => r#"<a href=\"/x%20y&amp;z=\u0041\">Tom &amp; Jerry%21 \"said\" a%2Fb</a>\n"#,
        "base64" => "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZyA=",
        "folded" => "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZyAg\n",
        "tokens" => {
            r#""id": "YWJjZGVmZ2hpamtsbW5vcHFyc3R1", "token": "QUJDREVGR0hJSktMTU5PUFFS", "#
        }
        _ => "d41d8cd98f00b204e9800998ecf8427e ",
    };
    let text = line.repeat((1 << 20) / line.len());
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| masker.text(black_box(&text)));
}
