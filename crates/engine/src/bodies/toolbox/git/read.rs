//! What looks at a repository: status, log, diff, show.

use serde_json::{Value, json};

use super::{GitCall, Repository, failed, refuse};
use crate::bodies::toolbox::ToolboxWork;
use crate::limit;
use crate::refusal::CallRefusal;
use crate::run::RunResult;

/// Separates the fields of a commit: no name or subject holds it.
const FIELD: char = '\u{1f}';

/// `gitStatus`.
pub(in crate::bodies::toolbox) async fn status(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let repository = Repository::open(work).await?;
    let arguments = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=all",
        // A renamed file has two paths, which the reader of this output does not expect.
        "--no-renames",
    ];
    let output = repository.succeed(GitCall::reading(&arguments)).await?;
    let value = read_status(&output.stdout.text, output.stdout.is_cut);
    Ok(RunResult::done(value))
}

/// The porcelain format, version 2, with NUL between the entries.
fn read_status(text: &str, is_cut: bool) -> Value {
    let mut entries = Vec::new();
    let (mut branch, mut commit, mut upstream) = (None, None, None);
    let (mut ahead, mut behind) = (0, 0);
    let mut truncated = is_cut;
    for line in text.split('\0').filter(|line| !line.is_empty()) {
        if let Some(header) = line.strip_prefix("# branch.") {
            match header.split_once(' ') {
                Some(("oid", oid)) if oid != "(initial)" => commit = Some(oid.to_owned()),
                Some(("head", head)) if head != "(detached)" => branch = Some(head.to_owned()),
                Some(("upstream", name)) => upstream = Some(name.to_owned()),
                Some(("ab", counts)) => {
                    // `+2 -1`, here without the signs.
                    let mut counts = counts.split(' ').map(|count| count.get(1..));
                    let mut next = || counts.next().flatten()?.parse().ok();
                    ahead = next().unwrap_or(0);
                    behind = next().unwrap_or(0);
                }
                _ => {}
            }
            continue;
        }
        let entry = match line.split_once(' ') {
            Some(("1", rest)) => changed(rest, 7),
            Some(("u", rest)) => changed(rest, 9),
            Some(("?", path)) => Some(json!({"path": path, "state": "untracked"})),
            _ => None,
        };
        match entry {
            Some(entry) if entries.len() < limit::GIT_ENTRIES_MAX => entries.push(entry),
            Some(_) => truncated = true,
            None => {}
        }
    }
    json!({
        "branch": branch, "commit": commit, "upstream": upstream, "ahead": ahead,
        "behind": behind, "entries": entries, "truncated": truncated,
    })
}

/// A changed entry: `XY`, fields, path.
fn changed(rest: &str, fields: usize) -> Option<Value> {
    // Counted from the left: a path may hold spaces.
    let mut parts = rest.splitn(fields + 1, ' ');
    let letters = parts.next()?;
    let path = parts.last()?;
    let word = |letter: Option<char>| match letter {
        Some('.') | None => None,
        Some('M') => Some("modified"),
        Some('T') => Some("type changed"),
        Some('A') => Some("added"),
        Some('D') => Some("deleted"),
        Some('U') => Some("unmerged"),
        Some(_) => Some("changed"),
    };
    let mut letters = letters.chars();
    Some(json!({
        "path": path, "staged": word(letters.next()), "state": word(letters.next()),
    }))
}

/// `gitLog`.
pub(in crate::bodies::toolbox) async fn log(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let repository = Repository::open(work).await?;
    let count = format!("--max-count={}", work.number("maxCount").unwrap_or(10));
    let format = format!("--format=%H{FIELD}%P{FIELD}%an{FIELD}%ae{FIELD}%aI{FIELD}%s");
    let from = work.text("ref").unwrap_or("HEAD");
    let mut arguments = vec![
        "log",
        "-z",
        // Signatures are checked by a program that the repository's settings name.
        "--no-show-signature",
        "--no-color",
        &count,
        &format,
        // A ref that begins with `-` stays a ref, and behind `--` a path stays a path.
        "--end-of-options",
        from,
        "--",
    ];
    arguments.extend(work.text("path"));
    let output = repository.succeed(GitCall::reading(&arguments)).await?;
    let commits: Vec<_> = output
        .stdout
        .text
        .split('\0')
        .filter_map(read_commit)
        .collect();
    Ok(RunResult::done(json!({"commits": commits})))
}

fn read_commit(line: &str) -> Option<Value> {
    let mut fields = line.split(FIELD);
    let mut next = || fields.next();
    let (commit, parents) = (next()?, next()?);
    let (author, address, date, subject) = (next()?, next()?, next()?, next()?);
    let parents: Vec<_> = parents.split_whitespace().collect();
    Some(json!({
        "commit": commit, "parents": parents, "author": author, "address": address,
        "date": date, "subject": subject,
    }))
}

/// `gitDiff`.
pub(in crate::bodies::toolbox) async fn diff(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let staged = work.flag("staged");
    let (from, to) = (work.text("from"), work.text("to"));
    if from.is_none() && to.is_some() {
        return Err(refuse("`to` needs `from`"));
    }
    if staged && to.is_some() {
        return Err(refuse("`staged` compares the index, so there is no `to`"));
    }
    let repository = Repository::open(work).await?;
    let mut arguments = vec![
        "diff",
        "--no-color",
        // Both start programs that the repository names.
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--ignore-submodules=all",
    ];
    arguments.extend(staged.then_some("--cached"));
    arguments.push("--end-of-options");
    arguments.extend(from);
    arguments.extend(to);
    arguments.push("--");
    arguments.extend(work.text("path"));
    let output = repository.succeed(GitCall::reading(&arguments)).await?;
    Ok(RunResult::done(json!({
        "diff": output.stdout.text, "truncated": output.stdout.is_cut,
    })))
}

/// `gitShow`.
pub(in crate::bodies::toolbox) async fn show(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let repository = Repository::open(work).await?;
    let from = work.text("ref").unwrap_or("HEAD");
    let object;
    let arguments = match work.text("path") {
        // A blob as it is stored: nothing converts it.
        Some(path) => {
            let path = path.strip_prefix("./").unwrap_or(path);
            object = format!("{from}:{path}");
            vec!["cat-file", "blob", &object]
        }
        None => vec![
            "show",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-renames",
            "--ignore-submodules=all",
            "--format=fuller",
            "--end-of-options",
            from,
            "--",
        ],
    };
    let output = repository.run(GitCall::reading(&arguments)).await?;
    if output.code != 0 {
        return Err(failed(&output.stderr));
    }
    Ok(RunResult::done(json!({
        "text": output.stdout.text, "truncated": output.stdout.is_cut,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_entry_by_entry() {
        let text = "# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0\
            # branch.ab +2 -1\0\
            1 M. N... 100644 100644 100644 aa bb a file with spaces\0\
            1 .D N... 100644 100644 000000 aa bb gone\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both ways\0\
            ? new\nline\0! ignored\0";
        let value = read_status(text, false);
        assert_eq!(value["branch"], "main");
        assert_eq!((&value["ahead"], &value["behind"]), (&json!(2), &json!(1)));
        assert_eq!(
            value["entries"],
            json!([
                {"path": "a file with spaces", "staged": "modified", "state": null},
                {"path": "gone", "staged": null, "state": "deleted"},
                {"path": "both ways", "staged": "unmerged", "state": "unmerged"},
                {"path": "new\nline", "state": "untracked"},
            ])
        );
    }
}
