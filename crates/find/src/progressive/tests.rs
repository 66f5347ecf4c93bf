//! Budgets hold whatever is listed and loaded.

use proptest::prelude::*;

use super::*;

fn item(tool: &str, tokens: usize) -> LoadedItem {
    LoadedItem {
        tool: tool.to_owned(),
        resource: None,
        tokens,
    }
}

fn names(items: &[LoadedItem]) -> Vec<&str> {
    items.iter().map(|item| item.tool.as_str()).collect()
}

#[test]
fn tokens_are_bytes_divided_by_four_rounded_up() {
    for (text, expected) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本", 2)] {
        assert_eq!(tokens(text), expected, "{text}");
    }
}

#[test]
fn a_line_is_the_first_sentence() {
    let long = "x".repeat(200);
    let cut = format!("{}…", "x".repeat(LINE_CHARS_MAX));
    let rows = [
        ("Sends a parcel. To anybody.", "Sends a parcel"),
        ("Sends v1.5 parcels.\nMore.", "Sends v1.5 parcels"),
        ("", ""),
        (long.as_str(), cut.as_str()),
    ];
    for (description, expected) in rows {
        assert_eq!(line(description), expected);
    }
}

#[test]
fn the_oldest_goes_first() {
    let mut loaded = Loaded::default();
    for (tool, cost) in [("a", 6_000), ("b", 4_000), ("c", 5_000)] {
        assert_eq!(loaded.load(item(tool, cost)), Ok(Vec::new()));
    }
    // Read again, `a` is new, so `b` is the oldest.
    assert_eq!(loaded.load(item("a", 6_000)), Ok(Vec::new()));
    let gone = loaded.load(item("d", 1)).expect("fits");
    assert_eq!(names(&gone), ["b"]);
    assert_eq!(names(loaded.items()), ["c", "a", "d"]);
    let before = loaded.clone();
    let error = loaded.load(item("e", 15_001)).expect_err("too large");
    let words = "it takes 15001 tokens, and all that is loaded together may take 15000";
    assert_eq!(error.to_string(), words);
    assert_eq!(loaded, before);
    let gone = loaded.load(item("f", 15_000)).expect("fits alone");
    assert_eq!(names(&gone), ["c", "a", "d"]);
}

#[test]
fn the_longest_absent_caller_starts_empty() {
    let mut readers = LoadedByCaller::default();
    let caller = |number: usize| Caller::named(format!("c{number}"));
    for number in 0..limits::PROGRESSIVE_CALLERS_MAX {
        readers.load(&caller(number), item("a", 1)).expect("fits");
    }
    readers.load(&caller(0), item("b", 1)).expect("fits");
    readers.load(&Caller::owner(), item("a", 1)).expect("fits");
    assert_eq!(readers.count(), limits::PROGRESSIVE_CALLERS_MAX);
    assert!(readers.loaded(&caller(1)).is_none());
    let first = readers.loaded(&caller(0)).expect("remembered");
    assert_eq!(names(first.items()), ["a", "b"]);
}

fn entries() -> impl Strategy<Value = Vec<ListedTool>> {
    let entry = (
        // Characters that JSON writes with six bytes are the worst.
        "(\\PC|\u{1}){1,256}",
        "\\PC{0,120}",
        proptest::option::of("\\PC{0,60}"),
        any::<usize>(),
        any::<u64>(),
    );
    let entry = entry.prop_map(|(name, line, category, tokens, cost)| ListedTool {
        name,
        line,
        category,
        tokens,
        cost,
    });
    proptest::collection::vec(entry, 0..60).prop_map(|mut entries| {
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        entries
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_hold_everything_once_within_the_budget(entries in entries()) {
        let mut seen = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let rest = entries.iter().filter(|entry| after.as_ref().is_none_or(|after| &entry.name > after));
            let page = Page::fill(rest.cloned(), entries.len());
            prop_assert!(tokens_of(&page).expect("JSON") <= limits::LIST_TOKENS_MAX);
            prop_assert!(entries.is_empty() || !page.tools.is_empty());
            seen.extend(page.tools);
            match page.next_cursor {
                Some(cursor) => after = Some(cursor),
                None => break,
            }
        }
        prop_assert_eq!(seen, entries);
    }

    #[test]
    fn nothing_is_ever_over_budget(loads in proptest::collection::vec((0..4_usize, 0..12_usize, 0..16_000_usize), 0..80)) {
        let (mut readers, mut again) = (LoadedByCaller::default(), LoadedByCaller::default());
        for (who, what, cost) in loads {
            let caller = Caller::named(format!("c{who}"));
            let others: Vec<_> = (0..4).filter(|other| *other != who).map(|other| {
                let caller = Caller::named(format!("c{other}"));
                readers.loaded(&caller).cloned()
            }).collect();
            let before = readers.loaded(&caller).cloned().unwrap_or_default();
            let told = readers.load(&caller, item(&format!("t{what}"), cost));
            prop_assert_eq!(&told, &again.load(&caller, item(&format!("t{what}"), cost)));
            let after = readers.loaded(&caller).cloned().unwrap_or_default();
            prop_assert!(after.tokens() <= limits::LOADED_TOKENS_MAX);
            match told {
                Err(_) => prop_assert_eq!(after, before),
                Ok((gone, total)) => {
                    prop_assert_eq!(total, after.tokens());
                    let name = format!("t{what}");
                    // What went and what stayed is what was there, in its order.
                    let kept = gone.iter().chain(after.items()).filter(|item| item.tool != name);
                    let had = before.items().iter().filter(|item| item.tool != name);
                    prop_assert!(kept.eq(had));
                    prop_assert_eq!(after.items().last(), Some(&item(&name, cost)));
                    // Nothing goes that could have stayed.
                    if let Some(last) = gone.last() {
                        prop_assert!(after.tokens() + last.tokens > limits::LOADED_TOKENS_MAX);
                    }
                }
            }
            let still: Vec<_> = (0..4).filter(|other| *other != who).map(|other| {
                let caller = Caller::named(format!("c{other}"));
                readers.loaded(&caller).cloned()
            }).collect();
            prop_assert_eq!(still, others);
        }
        prop_assert_eq!(readers, again);
    }
}
