//! What changes a repository here: branches, the index, commits.

use std::path::Path;

use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::text;
use serde_json::{Value, json};

use super::{GitCall, GitOutput, Repository, failed, refuse};
use crate::bodies::toolbox::ToolboxWork;
use crate::limit;
use crate::refusal::CallRefusal;
use crate::run::RunResult;

/// `gitBranch`.
pub(in crate::bodies::toolbox) async fn branch(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let action = work.text("action").unwrap_or("list");
    let name = work.text("name");
    let force = work.flag("force");
    let repository = match action {
        "list" => Repository::open(work).await?,
        _ => Repository::open_for_writing(work).await?,
    };
    let mut written = Vec::new();
    if action != "list" {
        let Some(name) = name else {
            return Err(refuse("`name` is needed to change a branch"));
        };
        check_name(&repository, name).await?;
        let start = work.text("startPoint");
        if start.is_some() && action != "create" {
            return Err(refuse("`startPoint` is for `create` only"));
        }
        let mut arguments = match (action, force) {
            ("create", false) => vec!["branch", "--no-track", name],
            ("create", true) => vec!["branch", "--no-track", "--force", name],
            ("delete", false) => vec!["branch", "--delete", name],
            ("delete", true) => vec!["branch", "--delete", "--force", name],
            (_, false) => vec!["switch", "--no-guess", name],
            (_, true) => vec!["switch", "--no-guess", "--discard-changes", name],
        };
        arguments.extend(start);
        if action == "switch" && repository.is_staged() {
            written = differing(&repository, name).await?;
        }
        repository.succeed(GitCall::writing(&arguments, "")).await?;
    }
    let format = "--format=%(refname:short)%1f%(objectname)%1f%(upstream:short)%1f%(HEAD)";
    let arguments = ["for-each-ref", "--count=1000", format, "refs/heads"];
    let output = repository.succeed(GitCall::reading(&arguments)).await?;
    let branches: Vec<Value> = output.stdout.text.lines().filter_map(read_branch).collect();
    let current = branches.iter().find(|branch| branch["current"] == true);
    let current = current.map(|branch| branch["name"].clone());
    repository.finish_switch(&written).await?;
    Ok(RunResult::done(json!({
        "branches": branches, "current": current,
    })))
}

/// The files that a switch from the current branch to another would write or remove.
async fn differing(
    repository: &Repository<'_, '_>,
    name: &str,
) -> Result<Vec<String>, CallRefusal> {
    let target = format!("refs/heads/{name}^{{commit}}");
    let arguments = [
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--name-only",
        "HEAD",
        &target,
        "--",
    ];
    let output = repository.run(GitCall::reading(&arguments)).await?;
    // A branch that is not there: the switch itself says so. Without a commit here, all of
    // the other is new.
    if output.code != 0 {
        let arguments = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", &target];
        let listed = repository.run(GitCall::reading(&arguments)).await?;
        return names(&listed);
    }
    names(&output)
}

fn names(output: &GitOutput) -> Result<Vec<String>, CallRefusal> {
    // A name beyond the cut would not be looked at.
    if output.stdout.is_cut {
        return Err(failed("git names too many files"));
    }
    let names = output.stdout.text.split('\0');
    Ok(names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Whether git takes a name for a branch: what is no name could be an option or a place.
async fn check_name(repository: &Repository<'_, '_>, name: &str) -> Result<(), CallRefusal> {
    let arguments = ["check-ref-format", "--branch", name];
    let output = repository.run(GitCall::reading(&arguments)).await?;
    // `@{-1}` means another branch.
    match output.code == 0 && output.stdout.text.trim_end() == name {
        true => Ok(()),
        false => Err(refuse("`name` is not a name of a branch")),
    }
}

fn read_branch(line: &str) -> Option<Value> {
    let mut fields = line.split('\u{1f}');
    let (name, commit) = (fields.next()?, fields.next()?);
    let (upstream, head) = (fields.next()?, fields.next()?);
    let upstream = (!upstream.is_empty()).then_some(upstream);
    Some(json!({
        "name": name, "commit": commit, "upstream": upstream, "current": head == "*",
    }))
}

/// `gitAdd`.
pub(in crate::bodies::toolbox) async fn add(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let repository = Repository::open_for_writing(work).await?;
    let mut arguments = vec!["add", "--"];
    let paths = paths(work);
    arguments.extend(&paths);
    repository.succeed(GitCall::writing(&arguments, "")).await?;
    // `.` adds as well that files are gone.
    check_deletions(&repository, &["diff", "--cached"]).await?;
    let arguments = ["diff", "--cached", "--name-only", "-z", "--no-renames"];
    let output = repository.succeed(GitCall::reading(&arguments)).await?;
    let added: Vec<_> = output
        .stdout
        .text
        .split('\0')
        .filter(|path| !path.is_empty())
        .collect();
    let value = json!({"added": added});
    repository.finish().await?;
    Ok(RunResult::done(value))
}

/// `gitCommit`.
pub(in crate::bodies::toolbox) async fn commit(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let paths = paths(work);
    let all = work.flag("all");
    if all && !paths.is_empty() {
        return Err(refuse("`all` and `paths` exclude each other"));
    }
    let repository = Repository::open_for_writing(work).await?;
    let (name, address) = identity(work);
    let user = format!("user.name={name}");
    let email = format!("user.email={address}");
    let author = work
        .text("author")
        .map(|author| format!("--author={author}"));
    let mut arguments = vec![
        "-c",
        &user,
        "-c",
        &email,
        "commit",
        "--quiet",
        // Hooks are programs of the repository.
        "--no-verify",
        "--no-gpg-sign",
        "--no-status",
        "--cleanup=whitespace",
        "--file=-",
    ];
    arguments.extend(author.as_deref());
    arguments.extend(all.then_some("--all"));
    if !paths.is_empty() {
        arguments.extend(["--only", "--"]);
        arguments.extend(&paths);
    }
    let message = work.text("message").unwrap_or_default();
    let output = repository
        .run(GitCall::writing(&arguments, message))
        .await?;
    if output.code != 0 {
        return Err(nothing_to_commit(output));
    }
    // Of the commit, however they came into it. It stays where it was made if this refuses.
    let made = ["log", "-1", "--format=", "--diff-merges=first-parent"];
    check_deletions(&repository, &made).await?;
    let arguments = [
        "log",
        "-1",
        "--no-show-signature",
        "--format=%H%x1f%s",
        "HEAD",
        "--",
    ];
    let made = repository.succeed(GitCall::reading(&arguments)).await?;
    let mut fields = made.stdout.text.trim_end().split('\u{1f}');
    let (commit, subject) = (fields.next(), fields.next());
    let arguments = ["symbolic-ref", "--quiet", "--short", "HEAD"];
    let branch = repository.run(GitCall::reading(&arguments)).await?;
    let branch = (branch.code == 0).then(|| branch.stdout.text.trim_end().to_owned());
    let value = json!({
        "commit": commit, "subject": subject, "branch": branch,
    });
    repository.finish().await?;
    Ok(RunResult::done(value))
}

/// Refuses that files are gone which no tool removes: they are missing because they were never
/// copied, and a commit would delete them for everyone. `listing` is the command of git that
/// lists what changed.
async fn check_deletions(
    repository: &Repository<'_, '_>,
    listing: &[&str],
) -> Result<(), CallRefusal> {
    // Where changes are not copied, nothing is left out of them.
    if !repository.is_staged() {
        return Ok(());
    }
    // Moved away is gone, too.
    let options = ["--no-renames", "--diff-filter=D", "--name-only", "-z"];
    let arguments = [listing, &options].concat();
    let output = repository.succeed(GitCall::reading(&arguments)).await?;
    let deleted = names(&output)?;
    let is_ours = |path: &&String| {
        let is_plain = !path
            .chars()
            .any(|one| one.is_control() || one == char::REPLACEMENT_CHARACTER);
        is_plain && host::files::untouchable(Path::new(path.as_str())).is_none()
    };
    let missing: Vec<_> = deleted.iter().filter(|path| !is_ours(path)).collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let shown = text::elided(first, limit::CHANGES_SUMMARY_NAME_CHARS_MAX);
    let more = match missing.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "`{shown}`{more} is missing in the folder, and no tool removes it; nothing was added \
         or committed, restore it first"
    );
    let error = CallError::new(Reason::ChangesProtected, message);
    Err(CallRefusal::with_status(Status::Failed, error))
}

fn nothing_to_commit(output: GitOutput) -> CallRefusal {
    match output.stderr.is_empty() {
        true => failed("nothing to commit; mark changes with gitAdd, or name `paths`"),
        false => failed(&output.stderr),
    }
}

/// Who commits: the caller, by a name and an address that mean no one else.
fn identity(work: &ToolboxWork<'_>) -> (String, String) {
    // No `<`, `>` or line break: they would end the name in the commit.
    let fits = |character: &char| character.is_alphanumeric() || " -_.:@".contains(*character);
    let name: String = work.request.caller.name.chars().filter(fits).collect();
    let name = match name.trim() {
        "" => "caller".to_owned(),
        name => name.to_owned(),
    };
    let plain = |character: char| match character.is_ascii_alphanumeric() {
        true => character.to_ascii_lowercase(),
        false => '-',
    };
    let local: String = name.chars().map(plain).collect();
    (name, format!("{local}@ringfence.invalid"))
}

fn paths<'w>(work: &'w ToolboxWork<'_>) -> Vec<&'w str> {
    let given = work.arguments.get("paths").and_then(Value::as_array);
    let given = given.map(Vec::as_slice).unwrap_or_default();
    given.iter().filter_map(Value::as_str).collect()
}
