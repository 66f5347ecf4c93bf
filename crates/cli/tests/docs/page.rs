//! A page and its fenced blocks.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Page {
    pub(crate) blocks: Vec<Block>,
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

const OPEN: &str = "<!-- example: ";

impl Page {
    pub(crate) fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap();
        let mut blocks: Vec<Block> = Vec::new();
        let mut directive: Option<String> = None;
        let mut inside: Option<Block> = None;
        for (index, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut inside, fence) {
                (Some(_), Some("")) => blocks.extend(inside.take()),
                (Some(block), _) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, Some(language)) => {
                    inside = Some(Block {
                        page: path.to_owned(),
                        line: index + 1,
                        language: language.to_owned(),
                        directive: directive.take(),
                        text: String::new(),
                    });
                }
                (None, None) => {
                    let said = line.trim().strip_prefix(OPEN);
                    let said = said.and_then(|said| said.strip_suffix("-->"));
                    if let Some(said) = said {
                        directive = Some(said.trim().to_owned());
                    } else if !line.trim().is_empty() {
                        // It stands right above its fence or is meant for another.
                        assert!(
                            directive.is_none(),
                            "{}:{}: a comment about no block",
                            path.display(),
                            index
                        );
                    }
                }
            }
        }
        assert!(inside.is_none(), "{}: a fence without end", path.display());
        assert!(
            directive.is_none(),
            "{}: a comment about no block",
            path.display()
        );
        Page { blocks }
    }
}

/// The text of the block whose first line is a comment with a name: `# NAME`.
pub(crate) fn block_named(path: &Path, name: &str) -> Result<String, String> {
    let blocks = Page::read(path).blocks;
    let found = blocks.into_iter().find(|block| {
        let first = block.text.lines().next().unwrap_or("");
        first.starts_with('#') && first.contains(name)
    });
    let none = || format!("no block begins with `# … {name}`");
    found.map(|block| block.text).ok_or_else(none)
}
