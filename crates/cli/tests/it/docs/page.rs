//! A page: its fenced blocks, and the hidden commands that prepare them.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Page {
    pub(crate) parts: Vec<Part>,
}

pub(crate) enum Part {
    Block(Block),
    Setup(Setup),
}

pub(crate) struct Block {
    pub(crate) page: PathBuf,
    /// The line of its fence, from 1.
    pub(crate) line: usize,
    /// As the fence says; empty if it does not.
    pub(crate) language: String,
    /// What the comment above it says.
    pub(crate) directive: Option<String>,
    pub(crate) text: String,
}

/// Commands in a comment, which readers do not see.
pub(crate) struct Setup {
    pub(crate) line: usize,
    /// Whether it needs a server.
    pub(crate) is_live: bool,
    pub(crate) text: String,
}

const OPEN: &str = "<!-- example: ";
const SETUP: &str = "<!-- setup";
const SETUP_LIVE: &str = "<!-- setup live";

impl Block {
    pub(crate) fn is_skipped(&self) -> bool {
        let directive = self.directive.as_deref();
        directive.is_some_and(|directive| directive.starts_with("skip"))
    }

    /// Why it is skipped must be said.
    pub(crate) fn reason(&self) -> Result<(), String> {
        match self.directive.as_deref().map(str::trim) {
            Some("skip") => Err("a block that is not run needs a reason".to_owned()),
            _ => Ok(()),
        }
    }
}

impl Page {
    pub(crate) fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap();
        let mut parts: Vec<Part> = Vec::new();
        let mut directive: Option<String> = None;
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let mut until = |end: &str| {
                let mut inside = String::new();
                loop {
                    let (_, line) = lines.next().expect("the end of a block");
                    if line.trim() == end {
                        return inside;
                    }
                    inside.push_str(line);
                    inside.push('\n');
                }
            };
            let said = line.trim().strip_prefix(OPEN);
            if let Some(language) = line.trim_start().strip_prefix("```") {
                parts.push(Part::Block(Block {
                    page: path.to_owned(),
                    line: index + 1,
                    language: language.to_owned(),
                    directive: directive.take(),
                    text: until("```"),
                }));
            } else if [SETUP, SETUP_LIVE].contains(&line.trim()) {
                parts.push(Part::Setup(Setup {
                    line: index + 1,
                    is_live: line.trim() == SETUP_LIVE,
                    text: until("-->"),
                }));
            } else if let Some(said) = said.and_then(|said| said.strip_suffix("-->")) {
                directive = Some(said.trim().to_owned());
            } else {
                // It stands right above its fence or is meant for another.
                let is_stray = directive.is_some() && !line.trim().is_empty();
                assert!(
                    !is_stray,
                    "{}:{index}: a comment about no block",
                    path.display()
                );
            }
        }
        assert!(
            directive.is_none(),
            "{}: a comment about no block",
            path.display()
        );
        Page { parts }
    }

    pub(crate) fn blocks(self) -> impl Iterator<Item = Block> {
        self.parts.into_iter().filter_map(|part| match part {
            Part::Block(block) => Some(block),
            Part::Setup(_) => None,
        })
    }
}

/// The text of the block whose first line is a comment with a name: `# NAME`.
pub(crate) fn block_named(path: &Path, name: &str) -> Result<String, String> {
    let mut blocks = Page::read(path).blocks();
    let found = blocks.find(|block| {
        let first = block.text.lines().next().unwrap_or("");
        first.starts_with('#') && first.contains(name)
    });
    let none = || format!("no block begins with `# … {name}`");
    found.map(|block| block.text).ok_or_else(none)
}

/// Whether a block is, word for word, a part of a program that is built and tested.
pub(crate) fn is_part_of(text: &str, file: &str) -> Result<(), String> {
    let program = fs::read_to_string(crate::root().join(file)).map_err(|it| it.to_string())?;
    match !text.trim().is_empty() && program.contains(text) {
        true => Ok(()),
        false => Err(format!("`{file}` has no such lines")),
    }
}
