//! Relative links in Markdown lead somewhere: to a file of the tree, and with `#` to a
//! heading in it. Links to the web are not followed, because tests use no network.

use std::collections::BTreeMap;

use crate::tidy::finding::TidyFinding;
use crate::tidy::lexer::is_name;
use crate::tidy::tree::Tree;

/// Links that lead nowhere.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (index, line) in prose(text) {
            for target in targets(&line) {
                let problem = problem(tree, path, &target);
                found.extend(problem.map(|sentence| TidyFinding::new(path, index + 1, sentence)));
            }
        }
    }
    found
}

fn problem(tree: &Tree, page: &str, target: &str) -> Option<String> {
    let is_web =
        target.contains("://") || target.starts_with("mailto:") || target.starts_with("//");
    if is_web || target.is_empty() {
        return None;
    }
    if target.starts_with('/') {
        return Some(format!("the link `{target}` must be relative"));
    }
    let (raw_path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match raw_path {
        "" => Some(page.to_owned()),
        raw_path => resolve(page, &raw_path.replace("%20", " ")),
    };
    let Some(path) = path.filter(|path| tree.contains(path)) else {
        return Some(format!("the link `{target}` leads nowhere"));
    };
    let text = tree.text(&path).filter(|_| path.ends_with(".md"))?;
    if anchor.is_empty() || anchors(text).iter().any(|known| known == anchor) {
        return None;
    }
    Some(format!("`{path}` has no heading `#{anchor}`"))
}

/// The path a link on a page means; nothing if it leaves the repository.
fn resolve(page: &str, relative: &str) -> Option<String> {
    let mut folders: Vec<&str> = page.split('/').collect();
    folders.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                folders.pop()?;
            }
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

/// Lines outside code, with their index; code within a line is cut out.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fence: Option<&str> = None;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => found.push((index, without_code(line))),
        }
    }
    found
}

/// The line without its `code`. A backtick that is not closed is text.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('`') {
        let more = after.len() - after.trim_start_matches('`').len();
        let fence = "`".repeat(more + 1);
        kept.push_str(before);
        let inside = after.trim_start_matches('`');
        match inside.split_once(&fence) {
            Some((_code, after)) => rest = after,
            None => rest = inside,
        }
    }
    kept.push_str(rest);
    kept
}

/// What a line of Markdown links to: `[…](here)`, `[…]: here`, `href="here"`.
fn targets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in line.split("](").skip(1) {
        found.push(inline(part));
    }
    if let Some((_label, target)) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
    {
        found.extend(target.split_whitespace().next().map(str::to_owned));
    }
    for attribute in ["href=\"", "src=\""] {
        for part in line.split(attribute).skip(1) {
            found.extend(part.split_once('"').map(|(target, _)| target.to_owned()));
        }
    }
    found
        .iter()
        .map(|target| target.trim_matches(['<', '>']).to_owned())
        .collect()
}

/// The target before the closing parenthesis and before a title.
fn inline(text: &str) -> String {
    let mut depth = 0_usize;
    let marks = text.chars().take_while(|mark| {
        match mark {
            '(' => depth += 1,
            ')' if depth == 0 => return false,
            ')' => depth -= 1,
            _ => {}
        }
        !mark.is_whitespace()
    });
    marks.collect()
}

/// The anchors of a page, as the usual viewers make them from headings.
fn anchors(text: &str) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        for attribute in ["id=\"", "name=\""] {
            let parts = line.split(attribute).skip(1);
            found.extend(parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned())));
        }
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title.trim());
        let count = counts.entry(slug.clone()).or_default();
        found.push(match *count {
            0 => slug,
            count => format!("{slug}-{count}"),
        });
        *count += 1;
    }
    found
}

fn slug(title: &str) -> String {
    // Of a link only its text is seen.
    let mut seen = String::new();
    let mut parts = title.split("](");
    seen.push_str(parts.next().unwrap_or_default());
    for part in parts {
        seen.push_str(part.split_once(')').map_or(part, |(_, after)| after));
    }
    let marks = seen
        .chars()
        .filter(|mark| is_name(*mark) || matches!(mark, ' ' | '-'));
    marks
        .map(|mark| if mark == ' ' { '-' } else { mark })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests;
