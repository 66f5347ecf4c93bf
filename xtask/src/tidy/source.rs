//! The source of the product, crate by crate, as the rules about structure and
//! names see it: without tests, and without programs that only tests start.

use crate::tidy::token::{Token, product_tokens};
use crate::tidy::tree::Tree;

/// One file of a crate.
#[derive(Debug)]
pub(crate) struct SourceFile<'tree> {
    /// The folder in `crates/`, or `xtask`.
    pub(crate) crate_name: &'tree str,
    /// From the root of the repository.
    pub(crate) path: &'tree str,
    /// The modules it is in, its own last; nothing for the crate's root.
    pub(crate) module: Vec<&'tree str>,
    /// Its code without what only tests compile.
    pub(crate) tokens: Vec<Token>,
}

impl<'tree> SourceFile<'tree> {
    /// Every source file of the product, sorted by path.
    pub(crate) fn all(tree: &'tree Tree) -> Vec<Self> {
        let texts = tree.texts();
        texts
            .filter_map(|(path, text)| Self::read(path, text))
            .collect()
    }

    fn read(path: &'tree str, text: &str) -> Option<Self> {
        let inner = path.strip_prefix("crates/").unwrap_or(path);
        let (crate_name, file) = inner.split_once("/src/")?;
        let module: Vec<&str> = file.strip_suffix(".rs")?.split('/').collect();
        let is_product = !crate_name.contains('/')
            && (path.starts_with("crates/") || crate_name == "xtask")
            && module.first() != Some(&"bin")
            && !module.contains(&"tests");
        is_product.then(|| Self {
            crate_name,
            path,
            module: match module.as_slice() {
                ["lib" | "main"] => Vec::new(),
                [outer @ .., "mod"] => outer.to_vec(),
                [..] => module,
            },
            tokens: product_tokens(text),
        })
    }
}

#[cfg(test)]
mod tests;
