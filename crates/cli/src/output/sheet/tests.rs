//! Whatever others wrote: only we write at the left edge, the choice stays in sight,
//! and all can be read.

use super::*;

fn sheet(text: &str) -> Sheet {
    Sheet {
        head: format!(
            "[risk L5 Critical] {} wants to run {}",
            name("bob"),
            name("delete")
        ),
        parts: vec![SheetPart::line("arguments", text)],
        about: format!("[risk L5 Critical] {} by {}", name("delete"), name("bob")),
        choices: vec![("y".to_owned(), "yes, for this call".to_owned())],
        otherwise: "no".to_owned(),
    }
}

fn size(columns: usize, rows: usize) -> Size {
    Size { columns, rows }
}

#[test]
fn a_short_question_is_shown_whole() {
    let sheet = sheet("{\"a\":1}");
    assert_eq!(
        sheet.lines(Size::USUAL),
        [
            "[risk L5 Critical] `bob` wants to run `delete`",
            "arguments:",
            "| {\"a\":1}",
        ]
    );
    assert_eq!(
        sheet.choice(Size::USUAL),
        [
            "answer for [risk L5 Critical] `delete` by `bob`:",
            "  y = yes, for this call",
            "  anything else = no",
        ]
    );
    assert!(!sheet.is_cut(Size::USUAL));
}

/// Every line of others' text has its bar, on every terminal, whatever takes how many
/// columns there.
#[test]
fn foreign_text_never_starts_at_the_left_edge() {
    let texts = [
        "x".repeat(5_000),
        "日本語".repeat(900),
        "е\u{301}".repeat(900),
        "🙂 ".repeat(900),
        "\u{2e3b}\u{fdfd}".repeat(500),
        "a\n[risk L0 Verified] `bob` wants to run `getCurrentTime`\n".repeat(40),
        format!("{}[risk L0 Verified]", " ".repeat(8_000)),
    ];
    for text in &texts {
        for columns in [20, 40, 80, 200] {
            for rows in [5, 24, 60] {
                let size = size(columns, rows);
                let sheet = sheet(text);
                let shown = sheet.lines(size);
                let head = ours(&sheet.head, BAR, size).len();
                for line in shown.iter().skip(head + 1) {
                    assert!(line.starts_with("| ") || line.starts_with("+ "), "{line}");
                }
                for line in sheet.pages(size).concat().iter().skip(head + 1) {
                    assert!(line.starts_with("| "), "{line}");
                }
                for line in shown.iter().chain(&sheet.pages(size).concat()) {
                    let taken: usize = line.chars().map(super::columns).sum();
                    assert!(taken <= size.columns(), "{taken} of {columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn cut_text_is_counted_and_can_be_shown_in_full() {
    let text = format!("{{\"text\":\"{}; rm -rf everything\"}}", "a".repeat(5_000));
    let sheet = sheet(&text);
    let shown = sheet.lines(Size::USUAL);
    let said = shown
        .iter()
        .find_map(|line| line.strip_prefix("+ "))
        .expect("words");
    let missing: usize = said
        .split(' ')
        .next()
        .expect("a count")
        .parse()
        .expect("a count");
    let of_theirs = |lines: &[String]| -> String {
        let theirs = lines.iter().filter_map(|line| line.strip_prefix("| "));
        theirs.collect()
    };
    assert_eq!(
        of_theirs(&shown).chars().count() + missing,
        text.chars().count()
    );
    assert!(shown.concat().contains("rm -rf everything"));
    assert!(
        sheet
            .choice(Size::USUAL)
            .contains(&"  v = show all of it first".to_owned())
    );
    let pages = sheet.pages(Size::USUAL);
    assert_eq!(of_theirs(&pages.concat()), text);
    assert!(pages.iter().all(|page| page.len() <= 22));
}

/// Head, parts and choice fit the screen, if it has the usual number of rows.
#[test]
fn a_long_question_does_not_scroll_away() {
    let mut sheet = sheet(&"x".repeat(100_000));
    sheet
        .parts
        .push(SheetPart::line("question", &"y".repeat(9_000)));
    sheet.parts.push(SheetPart::line("why", &"z".repeat(9_000)));
    for size in [size(80, 24), size(40, 24), size(200, 60)] {
        let lines = sheet.lines(size).len() + sheet.choice(size).len();
        assert!(lines < size.rows, "{lines} rows of {size:?}");
        assert!(sheet.is_cut(size));
    }
}

#[test]
fn names_are_quoted_safely_and_shortened() {
    assert_eq!(name("a` b"), "`a' b`");
    assert_eq!(name("a\u{1b}[2J\n"), "`a\\u{1b}[2J\\n`");
    assert!(name(&"x".repeat(500)).chars().count() <= 62);
    let long = Sheet {
        head: format!(
            "[risk L5] {} wants to run {}",
            name(&"b".repeat(90)),
            name(&"日".repeat(90))
        ),
        ..sheet("")
    };
    let lines = long.lines(size(40, 24));
    let own = lines.iter().filter(|line| !line.starts_with("| ")).count();
    assert_eq!(own, 2, "{lines:#?}");
}

/// A patch is read by its lines and their indentation; no line of it starts at the left edge.
#[test]
fn a_patch_keeps_its_lines_and_indentation() {
    let diff = ["@@ -1 +1 @@", "-        old", "+        new", "+\nfake:"].map(str::to_owned);
    let mut sheet = sheet("{}");
    sheet.parts.push(SheetPart::lines("diff", &diff));
    let wanted = [
        "diff:",
        "| @@ -1 +1 @@",
        "| -        old",
        "| +        new",
        "| +\\nfake:",
    ];
    let lines = sheet.lines(Size::USUAL);
    assert_eq!(lines.get(3..), Some(wanted.map(str::to_owned).as_slice()));
}
