//! What a search finds, and what it never tells.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::search::ask::{SearchRequest, WarningKind};
use model::document::ParamType;

mod naive;

fn entry<'a>(name: &'a str, description: &'a str) -> SearchEntry<'a> {
    SearchEntry {
        name,
        title: None,
        description,
        params: &[],
        tags: &[],
        category: None,
        app: "local",
    }
}

fn index(tools: &[(&str, &str)]) -> Index {
    let mut index = Index::new();
    for (name, description) in tools {
        index.put(&entry(name, description));
    }
    index
}

fn names(index: &Index, query: &str) -> Vec<String> {
    let view = index.view(|_| true);
    let found = index.search(&view, query, 10, 0.1);
    found.hits.into_iter().map(|hit| hit.name).collect()
}

#[test]
fn one_tool_alone_is_found() {
    let index = index(&[("readFile", "Reads a file")]);
    assert_eq!(names(&index, "read a file"), ["readFile"]);
    assert_eq!(names(&index, "files"), ["readFile"]);
    assert!(names(&index, "weather").is_empty());
}

#[test]
fn the_name_itself_comes_first_however_it_is_written() {
    let index = index(&[
        ("send", "Sends"),
        ("send_mail", "x"),
        ("sendMail", "x"),
        (
            "mailer",
            "Send mail, send mail, send mail: the way to send mail",
        ),
    ]);
    assert_eq!(names(&index, "send_mail")[..2], ["send_mail", "sendMail"]);
    assert_eq!(names(&index, "SENDMAIL")[0], "sendMail");
    assert_eq!(names(&index, "send")[0], "send");
    let view = index.view(|_| true);
    let found = index.search(&view, "sendMail", 10, 0.0);
    assert_eq!(
        (found.hits[0].name.as_str(), found.hits[0].score),
        ("sendMail", 1.0)
    );
    assert!(found.hits.iter().skip(1).all(|hit| hit.score < 1.0));
}

#[test]
fn a_thin_description_does_not_lose_to_a_long_one() {
    let long = format!(
        "Manages invoices. {}",
        "It also has many other uses and words. ".repeat(40)
    ) + "invoice invoice invoice";
    let index = index(&[("createInvoice", ""), ("office", long.as_str())]);
    assert_eq!(names(&index, "create an invoice")[0], "createInvoice");
    assert_eq!(names(&index, "invoice")[0], "createInvoice");
}

#[test]
fn labels_params_and_the_server_are_found() {
    let mut index = index(&[("other", "Nothing of the kind")]);
    let param = Param {
        name: "zipCode".to_owned(),
        description: "Where the parcel goes".to_owned(),
        required: true,
        kind: ParamType::String,
        test_value: None,
    };
    index.put(&SearchEntry {
        title: Some("Postage"),
        params: &[param],
        tags: &["logistics".to_owned()],
        category: Some("SHIPPING"),
        app: "parcelserver",
        ..entry("rate", "")
    });
    for query in [
        "zip code",
        "zipcode",
        "parcel",
        "logistics",
        "shipping",
        "parcelserver",
        "postage",
    ] {
        assert_eq!(names(&index, query), ["rate"], "{query}");
    }
}

#[test]
fn words_in_no_tool_are_named_and_cost() {
    let index = index(&[("hashText", "Hashes text"), ("readFile", "Reads a file")]);
    let view = index.view(|_| true);
    let whole = index.search(&view, "hash text", 10, 0.0);
    let half = index.search(&view, "hash frobnicated quuxes", 10, 0.0);
    assert!(whole.unmatched.is_empty());
    assert_eq!(half.unmatched, ["frobnicated", "quuxes"]);
    assert!(half.hits[0].score < whole.hits[0].score / 2.0);
}

/// Invariant 10: hidden tools show in no score, count or word.
#[test]
fn hidden_tools_leave_no_trace() {
    let seen = [
        ("hashText", "Hashes text"),
        ("readFile", "Reads a text file"),
    ];
    let alone = index(&seen);
    let mut mixed = index(&[("secretAudit", "Audits text and hash of payroll, payroll")]);
    for (name, description) in &seen {
        mixed.put(&entry(name, description));
    }
    mixed.put(&entry("text", "payroll"));
    let view = alone.view(|_| true);
    let narrow = mixed.view(|name| seen.iter().any(|(known, _)| *known == name));
    assert_eq!(view.count(), narrow.count());
    for query in [
        "text",
        "hash payroll",
        "secretAudit",
        "payroll",
        "text file",
        "secret audit",
    ] {
        assert_eq!(
            alone.search(&view, query, 10, 0.0),
            mixed.search(&narrow, query, 10, 0.0),
            "{query}"
        );
    }
}

#[test]
fn an_old_view_sees_nothing() {
    let mut index = index(&[("a1", "alpha"), ("b1", "beta")]);
    let view = index.view(|name| name == "a1");
    index.remove("a1");
    index.put(&entry("c1", "alpha"));
    assert_eq!(index.search(&view, "alpha", 10, 0.0), Hits::default());
    assert_eq!(index.without(&view, ["b1"]).count(), 0);
    assert_eq!(index.within(&view, |_| true).count(), 0);
    assert!(!index.has(&view, "c1"));
}

#[test]
fn a_view_is_narrowed_by_names_and_apps() {
    let mut index = index(&[("a1", "alpha"), ("b1", "alpha")]);
    let of_crm = SearchEntry {
        app: "crm",
        ..entry("c1", "alpha")
    };
    index.put(&of_crm);
    let found = |view: &View| {
        let hits = index.search(view, "alpha", 10, 0.0).hits;
        hits.into_iter().map(|hit| hit.name).collect::<Vec<_>>()
    };
    let view = index.view(|name| name != "b1");
    let within = index.within(&view, |app| app == "local");
    assert_eq!((found(&within), within.count()), (vec!["a1".to_owned()], 1));
    let without = index.without(&view, ["a1", "b1", "nope"]);
    assert_eq!(
        (found(&without), without.count()),
        (vec!["c1".to_owned()], 1)
    );
    assert_eq!(index.app("c1"), Some("crm"));
    assert_eq!(index.app("nope"), None);
}

#[test]
fn a_removed_tool_leaves_no_words() {
    let mut index = index(&[("a1", "alpha beta"), ("b1", "beta")]);
    let words = index.words();
    index.put(&entry("c1", "gamma delta"));
    assert!(index.remove("c1"));
    assert!(!index.remove("c1"));
    assert_eq!((index.words(), index.count()), (words, 2));
}

fn ask(arguments: serde_json::Value) -> Result<SearchRequest, Vec<String>> {
    let arguments = arguments.as_object().expect("an object");
    let read = SearchRequest::read(arguments, model::limits::SEARCH_TOP_DEFAULT);
    read.map_err(|faults| faults.into_iter().map(|fault| fault.message).collect())
}

#[test]
fn a_search_out_of_bounds_is_refused_with_all_reasons() {
    use serde_json::json;
    let faults = ask(json!({"queries": [], "topK": 51, "minRelevanceScore": 2})).unwrap_err();
    assert_eq!(faults.len(), 3, "{faults:?}");
    let rows = [
        json!({}),
        json!({"queries": ["x"]}),
        json!({"queries": ["x".repeat(257)]}),
        json!({"queries": vec!["ab"; 11]}),
        json!({"queries": [7]}),
        json!({"queries": "read"}),
        json!({"queries": ["ab"], "topK": 0}),
        json!({"queries": ["ab"], "topK": 1.5}),
        json!({"queries": ["ab"], "appIds": vec!["a"; 11]}),
        json!({"queries": ["ab"], "excludeToolNames": vec!["a"; 51]}),
        json!({"queries": ["ab"], "minRelevanceScore": -0.1}),
    ];
    for row in rows {
        assert_eq!(ask(row.clone()).unwrap_err().len(), 1, "{row}");
    }
    let good = ask(json!({"queries": ["ab"]})).expect("good");
    assert_eq!((good.top, good.score_min), (10, 0.1));
}

#[test]
fn several_queries_are_merged_with_honest_warnings() {
    use serde_json::json;
    let index = index(&[
        ("hashText", "Hashes text"),
        (
            "readFile",
            "Reads a file of text, among many other and longer things it may do for you",
        ),
        ("sendMail", "Sends mail"),
    ]);
    let all = index.view(|_| true);
    let wanted = ask(json!({
        "queries": ["hash text", "text", "brew coffee"],
        "excludeToolNames": ["sendMail", "nope"], "minRelevanceScore": 0.3,
    }));
    let wanted = wanted.expect("good");
    let narrowed = index.view(|name| name != "sendMail");
    let answer = wanted.answer(&index, &all, &narrowed);
    assert_eq!(answer.total, 3);
    assert_eq!(answer.tools[0].name, "hashText");
    assert_eq!(answer.tools[0].queries, ["hash text", "text"]);
    let kinds: Vec<_> = answer.warnings.iter().map(|warning| warning.kind).collect();
    let expected = [
        WarningKind::ExcludedToolNotFound,
        WarningKind::NoResults,
        WarningKind::UnmatchedWords,
        WarningKind::LowRelevance,
    ];
    assert_eq!(kinds, expected, "{:?}", answer.warnings);
    assert_eq!(answer.warnings[0].affected_tools, ["nope"]);
    assert_eq!(answer.warnings[2].words, ["brew", "coffee"]);
    let shown = serde_json::to_value(&answer.warnings[1]).expect("JSON");
    assert_eq!(shown["type"], "no_results");
    assert!(shown.get("affectedTools").is_none());
}

/// A change of an index.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, String),
    Remove(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let words = prop::collection::vec("[a-d]{1,2}", 0..6);
    let put = (0_usize..8, words).prop_map(|(tool, words)| Change::Put(tool, words.join(" ")));
    prop_oneof![3 => put, 1 => (0_usize..8).prop_map(Change::Remove)]
}

/// Everything an entry is made of.
#[derive(Clone, Debug)]
struct Texts {
    title: Option<String>,
    description: String,
    params: Vec<Param>,
    tags: Vec<String>,
    category: Option<String>,
    app: String,
}

impl Texts {
    fn entry<'a>(&'a self, name: &'a str) -> SearchEntry<'a> {
        SearchEntry {
            name,
            title: self.title.as_deref(),
            description: &self.description,
            params: &self.params,
            tags: &self.tags,
            category: self.category.as_deref(),
            app: &self.app,
        }
    }
}

/// Few words, so that they meet: of each kind the reader knows.
fn words(count: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => "[a-c]{1,3}(s|ed|ing)?",
        2 => "[a-c]{1,2}([_.-]?[A-C]{1,2}[a-c]?){1,2}",
        1 => "天?气预?",
        1 => "(the|TO|all)",
    ];
    prop::collection::vec(word, count).prop_map(|words| words.join(" "))
}

fn texts() -> impl Strategy<Value = Texts> {
    let param = (words(1..2), words(0..6)).prop_map(|(name, description)| Param {
        name,
        description,
        required: true,
        kind: ParamType::String,
        test_value: None,
    });
    let parts = (
        prop::option::of(words(1..4)),
        words(0..30),
        prop::collection::vec(param, 0..3),
        prop::collection::vec(words(1..2), 0..3),
        prop::option::of(words(1..2)),
        words(1..2),
    );
    parts.prop_map(|(title, description, params, tags, category, app)| Texts {
        title,
        description,
        params,
        tags,
        category,
        app,
    })
}

const TOOLS: [&str; 8] = ["a", "ab", "aB", "cdA", "b_c", "bC", "dd.a", "x"];

proptest! {
    /// However an index came to be, it answers like a fresh one, to the last bit.
    #[test]
    fn a_changed_index_is_a_new_one(
        changes in prop::collection::vec(change(), 0..40),
        query in "[a-d]{1,2}( [a-d]{1,2}){0,4}",
        hidden in 0_usize..8,
    ) {
        let mut changed = Index::new();
        let mut left: BTreeMap<usize, String> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Put(tool, text) => {
                    changed.put(&entry(TOOLS[tool], &text));
                    left.insert(tool, text);
                }
                Change::Remove(tool) => {
                    prop_assert_eq!(changed.remove(TOOLS[tool]), left.remove(&tool).is_some());
                }
            }
        }
        let mut fresh = Index::new();
        for (tool, text) in left.iter().rev() {
            if *tool != hidden {
                fresh.put(&entry(TOOLS[*tool], text));
            }
        }
        let narrow = changed.view(|name| name != TOOLS[hidden]);
        let whole = fresh.view(|_| true);
        let found = changed.search(&narrow, &query, 50, 0.0);
        prop_assert_eq!(&found, &fresh.search(&whole, &query, 50, 0.0));
        prop_assert!(found.hits.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
        prop_assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
        let few = changed.search(&narrow, &query, 2, 0.0);
        prop_assert_eq!(&few.hits[..], &found.hits[..few.hits.len()]);
    }

    /// The index answers like a search that reads every tool again, to the last bit; before
    /// and after some tools were taken out and put in again.
    #[test]
    fn the_index_answers_as_reading_everything_does(
        tools in prop::collection::btree_map("[a-c]{1,3}([_.]?[A-C][a-c]{0,2})?", texts(), 0..14),
        query in words(1..7),
        named in any::<prop::sample::Index>(),
        hides in 2_usize..9,
        (count_max, score_min) in (0_usize..6, 0.0..0.5),
    ) {
        let mut index = Index::new();
        for (name, texts) in &tools {
            index.put(&texts.entry(name));
        }
        for (name, texts) in tools.iter().step_by(3) {
            index.put(&entry(name, "something else"));
            prop_assert!(index.remove(name));
            index.put(&texts.entry(name));
        }
        let names: Vec<_> = tools.keys().collect();
        let is_seen = |name: &str| names.iter().position(|known| *known == name).is_some_and(|at| at % hides != 1);
        let seen = tools.iter().filter(|(name, _)| is_seen(name));
        let seen: Vec<_> = seen.map(|(name, texts)| texts.entry(name)).collect();
        let view = index.view(is_seen);
        let name = if names.is_empty() { "" } else { named.get(&names).as_str() };
        for query in [query.as_str(), name, &name.to_uppercase(), &format!("{query} zzz {name}")] {
            let found = index.search(&view, query, count_max, score_min);
            prop_assert_eq!(found, naive::search(&seen, query, count_max, score_min), "{}", query);
        }
    }

    /// Splitting agrees with a naive splitter.
    #[test]
    fn splitting_agrees_with_a_naive_splitter(
        text in prop_oneof!["(?s).{0,60}", "[a-cA-C1 _.-]{0,100}", "[aA-C天气ก-ง .ǅßİ-]{0,40}", words(0..9)],
    ) {
        let mut told = Vec::new();
        word::Reader::default().forms(&text, |form| {
            told.push(form.to_owned());
            ControlFlow::Continue(())
        });
        prop_assert_eq!(told, naive::words(&text));
    }

    /// Any text can be asked for and indexed.
    #[test]
    fn no_text_breaks_it(name in "\\PC{1,40}", description in "(?s).{0,200}", query in "(?s).{0,80}") {
        let mut index = Index::new();
        index.put(&entry(&name, &description));
        let view = index.view(|_| true);
        let any = index.search(&view, &query, 10, 0.1);
        prop_assert!(any.hits.len() <= 1);
        let found = index.search(&view, name.trim(), 10, 0.1);
        if word::joined(&name).is_empty() {
            return Ok(());
        }
        prop_assert_eq!(found.hits.first().map(|hit| hit.name.as_str()), Some(name.as_str()));
        prop_assert!(index.remove(&name));
        prop_assert_eq!((index.words(), index.count()), (0, 0));
    }
}
