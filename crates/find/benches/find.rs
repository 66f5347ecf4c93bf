//! What search costs. `cargo xtask bench` runs it.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should stop")]

use std::hint::black_box;

use divan::Bencher;
use find::search::{Index, SearchEntry};

fn main() {
    divan::main();
}

/// A catalog of as many tools that share a vocabulary of ordinary size, and a
/// description of some thirty words each.
fn catalog(count: usize) -> Vec<(String, String)> {
    let verbs = [
        "read", "write", "list", "find", "send", "create", "delete", "convert",
    ];
    let mut state: u64 = 7;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let tool = |index: usize| {
        let verb = verbs.get(index % verbs.len()).unwrap();
        let name = format!("{verb}Thing{}_{index}", next(400));
        // Few words are in many tools and many words in few.
        let words: Vec<_> = (0..30)
            .map(|_| {
                let reach = next(3_000) + 1;
                format!("word{}", next(reach))
            })
            .collect();
        (name, format!("{verb}s the {}", words.join(" ")))
    };
    (0..count).map(tool).collect()
}

fn entry<'a>((name, description): &'a (String, String)) -> SearchEntry<'a> {
    SearchEntry {
        name,
        title: None,
        description,
        params: &[],
        tags: &[],
        category: Some("THINGS"),
        app: "local",
    }
}

fn index(tools: &[(String, String)]) -> Index {
    let mut index = Index::new();
    for tool in tools {
        index.put(&entry(tool));
    }
    index
}

/// The slowest of a thousand is the bound on p99: below 5 ms with 10,000 tools.
#[divan::bench(args = [1, 100, 10_000], sample_count = 1_000, sample_size = 1)]
fn search(bencher: Bencher<'_, '_>, count: usize) {
    let index = index(&catalog(count));
    let view = index.view(|_| true);
    let mut turn = 0;
    bencher.bench_local(move || {
        turn += 1;
        let query = format!(
            "find the thing{} with word{} and word1 things",
            turn % 400,
            turn % 50
        );
        index.search(&view, &query, 10, 0.1)
    });
}

/// A thousand queries of all kinds over 10,000 tools: a rare word, a word every tool
/// has, a name, unknown words, and a long list.
#[divan::bench(sample_count = 1_000, sample_size = 1)]
fn search_mixed(bencher: Bencher<'_, '_>) {
    let tools = catalog(10_000);
    let index = index(&tools);
    let view = index.view(|name| !name.ends_with('3'));
    let mut turn = 0;
    bencher.bench_local(move || {
        turn += 1;
        let (name, description) = tools.get(turn * 7 % tools.len()).unwrap();
        let query = match turn % 5 {
            0 => format!("word{}", turn % 3_000),
            1 => "local things".to_owned(),
            2 => name.clone(),
            3 => format!("quux frobnicate word{}", turn % 50),
            _ => description.clone(),
        };
        index.search(&view, &query, 50, 0.0)
    });
}

/// Ten queries of common words, each in thousands of tools.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn search_ten_at_once(bencher: Bencher<'_, '_>) {
    let index = index(&catalog(10_000));
    let view = index.view(|_| true);
    bencher.bench_local(move || {
        let query = |turn: usize| format!("read things word0 word1 word{turn}");
        let hits = (0..10).map(|turn| index.search(&view, &query(turn), 50, 0.0).hits.len());
        hits.sum::<usize>()
    });
}

/// One of 10,000 tools is edited.
#[divan::bench(sample_count = 1_000, sample_size = 1)]
fn search_index_replace_one(bencher: Bencher<'_, '_>) {
    let tools = catalog(10_000);
    let mut index = index(&tools);
    let mut turn = 0;
    bencher.bench_local(move || {
        turn = (turn + 7_919) % tools.len();
        index.put(&entry(tools.get(turn).unwrap()));
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn search_index_of_10_000(bencher: Bencher<'_, '_>) {
    let tools = catalog(10_000);
    bencher.bench_local(|| index(black_box(&tools)));
}
