//! Every fenced block of every page is true: it loads, checks or runs. Every table of
//! names, numbers and codes says what the code says.
//!
//! What is done with a block follows from its language: `toml` are settings, `json` is
//! a document, `js` a script that the guard takes, `sh` are commands, `console` are
//! commands with what they print. A comment above the fence says otherwise, and the
//! readers of a page do not see it:
//!
//! ```text
//! <!-- example: skip REASON -->          not run; the reason is needed
//! <!-- example: story -->                runs in the one home of the page's story
//! <!-- example: live -->                 the same, with a server beside it
//! <!-- example: serve -->                servers: each starts, and ends when told to
//! <!-- example: terminal -->             runs at a terminal where every answer is `y`
//! <!-- example: terminal=COMMAND -->     what a command shows at a terminal
//! <!-- example: file=NAME -->            is written to a file of the story
//! <!-- example: with=NAME -->            settings beside the file of an earlier block
//! <!-- example: member -->               members of a document
//! <!-- example: param -->                one param of a document
//! <!-- example: arguments=TOOL -->       the arguments of a call that is not made
//! <!-- example: call=TOOL -->            the arguments of a call that is made
//! <!-- example: stdin=COMMAND -->        a program that reads what a command prints
//! <!-- example: context=JSON -->         a script that runs, with this context
//! <!-- example: from=FILE -->            a part of a program that is built and tested
//! <!-- example: output=COMMAND -->       what a command prints
//! <!-- example: lines=COMMAND -->        lines among those a command prints
//! ```
//!
//! In what is printed `…` stands for anything, and alone in a line for any lines. A
//! comment `<!-- setup … -->` or `<!-- setup live … -->` holds commands that prepare the
//! page's story. What they
//! write to the file `env` is known to every later command. In a story with a server,
//! `127.0.0.1:7464` is that server, and `$KEY` an operator's key.
//!
//! A table stands below `<!-- table: NAME -->`, which holds it to the code
//! (`facts.rs`; `UPDATE_CASES=1` writes those that are made from it), or below
//! `<!-- table: prose -->`.

mod facts;
mod live;
mod page;
mod source;
mod story;
mod table;

use std::fs;

use page::{Block, Page, Part, Setup};
use story::Story;

use crate::root;

/// Blocks that are not run: those that build or test the whole program, and those that
/// install it, which `packaging/try.sh` runs.
const SKIPPED_MAX: usize = 9;

/// Every page for readers, by its name below the root.
fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    for folder in [
        ".",
        "docs/decisions",
        "docs/guide",
        "docs/measurements",
        "docs/reference",
        "fuzz",
        "peers",
    ] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let folder = folder.strip_prefix('.').unwrap_or(folder);
        let slash = if folder.is_empty() { "" } else { "/" };
        let pages_of = names.filter(|name| name.ends_with(".md"));
        pages.extend(pages_of.map(|name| format!("{folder}{slash}{name}")));
    }
    pages.sort();
    pages
}

/// Whether a page shows readers what to type. The others speak to those who change the
/// program, and quote it.
fn is_run(page: &str) -> bool {
    page.starts_with("docs/guide/")
        || page.starts_with("docs/reference/")
        || ["README.md", "SECURITY.md", "CONTRIBUTING.md"].contains(&page)
}

/// The picture of the README for dark pages is the one for light pages in other colours.
#[test]
fn both_pictures_are_the_same_drawing() {
    let colour = regex::Regex::new("#[0-9a-f]{6}").unwrap();
    let drawing = |name: &str| {
        let text = fs::read_to_string(root().join("docs").join(name)).unwrap();
        colour.replace_all(&text, "#").into_owned()
    };
    assert_eq!(drawing("call.svg"), drawing("call-dark.svg"));
}

#[test]
fn every_block_is_true() {
    let only = std::env::var("ONLY_PAGE").ok();
    let mut wrong = Vec::new();
    let (mut run, mut skipped) = (0, 0);
    for name in pages().into_iter().filter(|name| is_run(name)) {
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let page = Page::read(&root().join(&name));
        let mut story = Story::new(&name);
        for part in &page.parts {
            let (line, done) = match part {
                Part::Setup(setup) => (setup.line, prepare(setup, &mut story)),
                Part::Block(block) if block.is_skipped() => {
                    skipped += 1;
                    (block.line, block.reason())
                }
                Part::Block(block) => {
                    run += 1;
                    (block.line, judge(block, &mut story))
                }
            };
            if let Err(why) = done {
                wrong.push(format!("{name}:{line}\n{why}"));
            }
        }
        if let Err(why) = story.end() {
            wrong.push(format!("{name}: its server\n{why}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} blocks\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    if only.is_none() {
        assert!(run >= 50, "only {run} blocks ran");
        assert!(skipped <= SKIPPED_MAX, "{skipped} blocks are not run");
    }
    println!("{run} blocks ran, {skipped} did not");
}

fn prepare(setup: &Setup, story: &mut Story) -> Result<(), String> {
    if setup.is_live {
        story.serve()?;
    }
    story.commands(&setup.text)
}

fn judge(block: &Block, story: &mut Story) -> Result<(), String> {
    let directive = block.directive.as_deref().unwrap_or("");
    let (key, value) = directive.split_once('=').unwrap_or((directive, ""));
    let text = block.text.as_str();
    let fresh = || story::fresh(&block.page);
    let bare = |members: &str| {
        format!(r#"{{"name": "shown", "code": "return 1", "codeType": "Javascript", {members}}}"#)
    };
    match (block.language.as_str(), key) {
        (_, "file") => story.write(value, text),
        (_, "output") => story.prints(value, text),
        (_, "lines") => story.prints_lines(value, text),
        ("" | "text", "terminal") => story.shows(value, text),
        ("sh", "terminal") => story.answered(text),
        ("console", "terminal") => story.terminal_transcript(text),
        ("sh", "serve") => fresh().servers(text),
        ("console", "live") => {
            story.serve()?;
            story.transcript(text)
        }
        ("sh", "live") => {
            story.serve()?;
            story.commands(text)
        }
        ("console", "story") => story.transcript(text),
        ("console", "") => fresh().transcript(text),
        ("sh", "story") => story.commands(text),
        ("sh", "") => fresh().commands(text),
        ("toml", "") => fresh().settings(text),
        ("toml", "with") => {
            let more = page::block_named(&block.page, value)?;
            fresh().settings(&format!("{more}\n{text}"))
        }
        ("json", "") => fresh().document(text),
        ("json", "member") => fresh().document(&bare(text)),
        ("json", "param") => fresh().document(&bare(&format!(r#""params": [{text}]"#))),
        ("json", "arguments") => fresh().arguments(value, text),
        ("json", "call") => fresh().called(value, text),
        ("js", "") => fresh().script(text, None),
        ("js", "story") => story.script(text, Some("{}")),
        ("js", "context") => fresh().script(text, Some(value)),
        ("rust", "from") => page::is_part_of(text, value),
        ("python", "stdin") => fresh().program("python3", text, value),
        (language, directive) => Err(format!(
            "nothing says how a block `{language}` is run (`{directive}`); the head of this test lists what may be said"
        )),
    }
}

#[test]
fn every_table_agrees_with_the_code() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let is_update = std::env::var_os("UPDATE_CASES").is_some();
    for name in pages() {
        let path = root().join(&name);
        let text = fs::read_to_string(&path).unwrap();
        let held = table::held(&name, &text);
        seen += held.count;
        if held.text != text {
            match is_update {
                true => fs::write(&path, &held.text).unwrap(),
                false => wrong.push(format!("{name}: UPDATE_CASES=1 writes its tables")),
            }
        }
        wrong.extend(held.faults);
    }
    assert!(seen >= 30, "only {seen} tables are held to the code");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Documents without `toolId` get theirs from it.
#[test]
fn the_published_namespace_is_the_one_in_use() {
    let page = fs::read_to_string(root().join("docs/guide/tool-document.md")).unwrap();
    assert!(page.contains(&model::document::digest::TOOL_NAMESPACE.to_string()));
}
