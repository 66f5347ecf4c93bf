//! Files a person can read in one sitting, and no large blobs. The length of
//! functions is clippy's business; here we only see that it is still asked.

use crate::tidy::finding::TidyFinding;
use crate::tidy::tree::{FILE_BYTES_MAX, Tree};

/// Lines in one source file.
const FILE_LINES_MAX: usize = 800;

/// Lines in one function, as `clippy.toml` says it.
const FUNCTION_LINES: &str = "too-many-lines-threshold = 70";

/// The guest's image: the one large file that is built, and compared with what its
/// sources make. Bytes it may have.
const IMAGES: &str = "guest/image/";
const IMAGE_BYTES_MAX: u64 = 6 << 20;

const SOURCE: &[&str] = &[".rs", ".js", ".ts", ".tsx", ".c", ".h", ".css"];

/// Long files, large files, and a loosened threshold.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for (path, file) in tree.files() {
        let most = match path.starts_with(IMAGES) {
            true => IMAGE_BYTES_MAX,
            false => FILE_BYTES_MAX,
        };
        if file.bytes_count > most {
            let kib = file.bytes_count / 1024;
            let sentence = format!("{kib} KiB in one file; at most {} KiB", most / 1024);
            found.push(TidyFinding::new(path, 1, sentence));
        }
    }
    for (path, text) in tree.texts().filter(|(path, _)| is_ours(path)) {
        let count = text.lines().count();
        if count > FILE_LINES_MAX {
            let sentence = format!("{count} lines in one file; at most {FILE_LINES_MAX}");
            found.push(TidyFinding::new(path, FILE_LINES_MAX + 1, sentence));
        }
    }
    let threshold = tree.text("clippy.toml").unwrap_or_default();
    if !threshold.lines().any(|line| line.trim() == FUNCTION_LINES) {
        found.push(TidyFinding::new(
            "clippy.toml",
            1,
            format!("`{FUNCTION_LINES}` is missing"),
        ));
    }
    found
}

/// Source that we write, as opposed to source we carry along.
fn is_ours(path: &str) -> bool {
    SOURCE.iter().any(|ending| path.ends_with(ending))
        && !path.split('/').any(|folder| folder == "vendor")
}

#[cfg(test)]
mod tests;
