//! Searching the bundled tools the way people and models ask: `cases/search.txt` has
//! a query and the tool it is for on each line.

use std::fmt::Write as _;
use std::fs;

use find::search::{Index, SearchEntry};
use model::document::{self, Document};

use crate::{entries, root};

fn catalog() -> Vec<Document> {
    let folders = entries("catalog").into_iter().filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        document::parse(&text)
            .items
            .pop()
            .unwrap()
            .document
            .unwrap()
    };
    files.map(|file| read(file.unwrap().path())).collect()
}

fn index(documents: &[Document]) -> Index {
    let mut index = Index::new();
    for document in documents {
        index.put(&SearchEntry {
            name: &document.name,
            title: None,
            description: &document.description,
            params: &document.params,
            tags: &document.tags,
            category: document.category.as_deref(),
            app: "ringfence",
        });
    }
    index
}

#[test]
fn bundled_tools_are_found_by_what_people_say() {
    let documents = catalog();
    let index = index(&documents);
    let view = index.view(|_| true);
    let cases = fs::read_to_string(root().join("cases/search.txt")).unwrap();
    let (mut asked, mut first, mut in_five) = (0_u32, 0_u32, 0_u32);
    let mut report = String::new();
    for line in cases.lines().filter(|line| !line.starts_with('#')) {
        let (query, wanted) = line.split_once(" -> ").unwrap();
        let found = index.search(&view, query, 10, 0.1).hits;
        let rank = found.iter().position(|hit| hit.name == wanted);
        asked += 1;
        first += u32::from(rank == Some(0));
        if rank != Some(0) {
            let top: Vec<_> = found.iter().take(3).map(|hit| hit.name.as_str()).collect();
            writeln!(report, "{query}: {wanted} at {rank:?}, before it {top:?}").unwrap();
        }
        in_five += u32::from(rank.is_some_and(|rank| rank < 5));
    }
    assert!(asked >= 60, "only {asked} queries");
    assert!(
        in_five * 100 >= asked * 97,
        "{in_five} of {asked}:\n{report}"
    );
    assert!(
        first * 100 >= asked * 85,
        "{first} of {asked} first:\n{report}"
    );
}

#[test]
fn every_bundled_tool_is_found_by_its_name_first() {
    let documents = catalog();
    let index = index(&documents);
    let view = index.view(|_| true);
    assert!(documents.len() > 80);
    for document in &documents {
        let spoken = document.name.to_uppercase();
        for query in [&document.name, &spoken] {
            let found = index.search(&view, query, 1, 0.1).hits;
            assert_eq!(found.first().unwrap().name, document.name, "{query}");
        }
    }
}

#[test]
fn a_question_no_tool_answers_finds_nothing() {
    let index = index(&catalog());
    let view = index.view(|_| true);
    for query in [
        "brew espresso",
        "zzxqv",
        "how do I",
        "чебурашка",
        "xyzzy plugh frotz",
    ] {
        let found = index.search(&view, query, 10, 0.1);
        assert!(found.hits.is_empty(), "{query}: {:?}", found.hits);
    }
}
