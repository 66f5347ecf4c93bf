//! Every fenced block of every page is true: it loads, checks or runs.
//!
//! What is done with a block follows from its language: `toml` are settings, `json` is
//! a document, `js` a script that the guard takes, `sh` are commands, `console` are
//! commands with what they print. A comment above the fence says otherwise, and the
//! readers of a page do not see it:
//!
//! ```text
//! <!-- example: skip REASON -->          not run; the reason is needed
//! <!-- example: story -->                 runs in the one home of the page's story
//! <!-- example: file=NAME -->             is written to a file of the story
//! <!-- example: with=NAME -->             settings beside the file of an earlier block
//! <!-- example: member -->                members of a document
//! <!-- example: param -->                 one param of a document
//! <!-- example: arguments=TOOL -->        the arguments of a call
//! <!-- example: stdin=COMMAND -->         a program that reads what a command prints
//! <!-- example: context=JSON -->          a script that runs, with this context
//! <!-- example: output=COMMAND -->        what a command prints
//! ```
//!
//! In what is printed `…` stands for anything, and alone in a line for any lines.
//! `<!-- table: NAME -->` above a table holds it to the code; `UPDATE_CASES=1` writes it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]

mod page;
mod story;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use page::{Block, Page};
use story::Story;

/// Blocks that are not run may not grow in number without a look at this line.
const SKIPPED_MAX: usize = 24;

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// Every page for readers, by its name below the root.
fn pages() -> Vec<String> {
    let mut pages = vec![
        "README.md".to_owned(),
        "SECURITY.md".to_owned(),
        "CONTRIBUTING.md".to_owned(),
    ];
    for folder in ["docs/guide", "docs/reference"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let pages_of = names.filter(|name| name.ends_with(".md"));
        pages.extend(pages_of.map(|name| format!("{folder}/{name}")));
    }
    pages.sort();
    pages
}

#[test]
fn every_block_is_true() {
    let only = std::env::var("ONLY_PAGE").ok();
    let mut wrong = Vec::new();
    let (mut run, mut skipped) = (0, 0);
    for name in pages() {
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let page = Page::read(&root().join(&name));
        let mut story = Story::new(&name);
        for block in &page.blocks {
            let done = match &block.directive {
                Some(directive) if directive.starts_with("skip") => {
                    skipped += 1;
                    match directive.trim_start_matches("skip").trim() {
                        "" => Err("a block that is not run needs a reason".to_owned()),
                        _ => Ok(()),
                    }
                }
                _ => {
                    run += 1;
                    judge(block, &mut story)
                }
            };
            if let Err(why) = done {
                wrong.push(format!("{name}:{} ({})\n{why}", block.line, block.language));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} blocks\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    if only.is_none() {
        assert!(run >= 35, "only {run} blocks ran");
        assert!(skipped <= SKIPPED_MAX, "{skipped} blocks are not run");
    }
    println!("{run} blocks ran, {skipped} did not");
}

fn judge(block: &Block, story: &mut Story) -> Result<(), String> {
    let directive = block.directive.as_deref().unwrap_or("");
    let (key, value) = directive.split_once('=').unwrap_or((directive, ""));
    let text = block.text.as_str();
    match (block.language.as_str(), key) {
        (_, "file") => story.write(value, text),
        (_, "output") => story::fresh(&block.page).prints(value, text),
        ("console", "story") => story.transcript(text),
        ("console", "") => story::fresh(&block.page).transcript(text),
        ("sh", "story") => story.commands(text),
        ("sh", "") => story::fresh(&block.page).commands(text),
        ("toml", "") => story::fresh(&block.page).settings(text),
        ("toml", "with") => {
            let more = page::block_named(&block.page, value)?;
            story::fresh(&block.page).settings(&format!("{more}\n{text}"))
        }
        ("json", "") => story::fresh(&block.page).document(text),
        ("json", "member") => {
            let document = format!(
                r#"{{"name": "shown", "code": "return 1", "codeType": "Javascript", {text}}}"#
            );
            story::fresh(&block.page).document(&document)
        }
        ("json", "param") => {
            let document = format!(
                r#"{{"name": "shown", "code": "return 1", "codeType": "Javascript", "params": [{text}]}}"#
            );
            story::fresh(&block.page).document(&document)
        }
        ("json", "arguments") => story::fresh(&block.page).arguments(value, text),
        ("js", "") => story::fresh(&block.page).script(text, None),
        ("js", "context") => story::fresh(&block.page).script(text, Some(value)),
        ("python", "stdin") => story::fresh(&block.page).program("python3", text, value),
        (language, directive) => Err(format!(
            "nothing says how a block `{language}` is run (`{directive}`); the head of this test lists what may be said"
        )),
    }
}

#[test]
fn every_table_held_to_the_code_agrees() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for name in pages() {
        let path = root().join(&name);
        let text = fs::read_to_string(&path).unwrap();
        let (held, count) = table::held(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        seen += count;
        if held != text {
            if std::env::var_os("UPDATE_CASES").is_some() {
                fs::write(&path, &held).unwrap();
            }
            wrong.push(name);
        }
    }
    assert!(seen >= 3, "only {seen} tables are held to the code");
    assert!(
        wrong.is_empty() || std::env::var_os("UPDATE_CASES").is_some(),
        "tables differ in {wrong:?}; UPDATE_CASES=1 writes them"
    );
}
