//! What holds for any text.

use std::fs;

use proptest::prelude::*;

use crate::case::{cases, folder};

/// Pieces that make scripts interesting.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "`",
    "${",
    "'",
    "\"",
    "/",
    "//",
    "/*",
    "*/",
    "\\",
    "\n",
    "\r",
    "\u{2028}",
    ";",
    ",",
    ".",
    "...",
    "?.",
    "=>",
    "=",
    "+",
    "-",
    "++",
    "--",
    "!",
    "<!--",
    "-->",
    "a",
    "b",
    "if",
    "else",
    "for",
    "of",
    "in",
    "while",
    "do",
    "return",
    "await",
    "async",
    "function",
    "class",
    "const",
    "let",
    "yield",
    "typeof",
    "new",
    "this",
    "1",
    "0x",
    "1.",
    "1e",
    "eval",
    "callTool",
    "constructor",
    "__proto__",
    "'x'",
    " ",
    "é",
    "е",
    "\u{202e}",
    "\u{200b}",
    "\0",
    "#",
    "@",
    "=== ",
    "case",
    "default:",
    "switch(a){",
    "try{",
    "}catch(e){",
    "import",
    "export",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        guard::fuzz(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        guard::fuzz(&bytes);
    }

    #[test]
    fn any_pieces_are_answered(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        guard::fuzz(pieces.concat().as_bytes());
    }

    #[test]
    fn repeated_pieces_do_not_panic(piece in prop::sample::select(PIECES), other in prop::sample::select(PIECES), count in 0usize..3_000) {
        guard::fuzz([piece, other].concat().repeat(count).as_bytes());
    }

    /// A case with a piece cut out, doubled or put elsewhere.
    #[test]
    fn any_change_of_a_case_is_answered(index in any::<prop::sample::Index>(), from in 0usize..400, length in 0usize..40, piece in prop::sample::select(PIECES)) {
        let mut all = cases("guard");
        all.extend(cases("attack/guard"));
        let mut text: Vec<char> = index.get(&all).source.chars().take(2_000).collect();
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        text.splice(from..to, piece.chars());
        guard::fuzz(text.into_iter().collect::<String>().as_bytes());
    }
}

#[test]
fn the_seeds_of_the_fuzzer_are_answered() {
    let folder = folder("../fuzz/seeds/guard");
    let seeds: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        guard::fuzz(&fs::read(seed).unwrap());
    }
}
