//! The changes of one version, from the changelog.

use anyhow::{Result, ensure};

/// The heading of unreleased changes.
const UNRELEASED: &str = "Unreleased";

/// The changes of a version. Fails if they are missing, or if something is still listed
/// as not released.
pub(super) fn changes(log: &str, version: &str) -> Result<String> {
    let sections = sections(log);
    let of = |name: &str| {
        let found = sections.iter().find(|(title, _)| *title == name);
        found.map(|(_, text)| text.trim())
    };
    let waiting = of(UNRELEASED).unwrap_or_default();
    ensure!(
        waiting.is_empty(),
        "CHANGELOG.md still lists changes as `{UNRELEASED}`; rename that heading to `{version}`"
    );
    let changes = of(version).unwrap_or_default();
    ensure!(
        !changes.is_empty(),
        "CHANGELOG.md says nothing about {version}; it needs the heading `## {version}` and its changes"
    );
    let newest = sections.iter().find(|(title, _)| *title != UNRELEASED);
    ensure!(
        newest.is_some_and(|(title, _)| *title == version),
        "{version} is not the newest version of CHANGELOG.md; put its heading first"
    );
    Ok(changes.to_owned())
}

/// The headings of the second level, by their first word, and what follows each.
fn sections(log: &str) -> Vec<(&str, String)> {
    let mut sections: Vec<(&str, String)> = Vec::new();
    for line in log.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push((title.split_whitespace().next().unwrap_or(""), String::new()));
        } else if let Some((_, text)) = sections.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    sections
}
