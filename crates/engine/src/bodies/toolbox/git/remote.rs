//! What reaches another repository: clone, fetch, push. Git speaks plain HTTP to a route on
//! its own loopback; our side resolves, checks, speaks TLS and adds the credential.

use std::path::{Component, Path};
use std::sync::Arc;

use host::egress::git::{GIT_ROUTE_PATH, GitCredential, GitRoute, GitService, GitUnreached};
use model::config::ConnectionKind;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::text;
use serde_json::{Value, json};
use url::Url;

use super::{ClonedFiles, GitCall, GitOutput, Repository, failed, refuse};
use crate::bodies::toolbox::ToolboxWork;
use crate::connections;
use crate::limit;
use crate::refusal::CallRefusal;
use crate::run::RunResult;

/// Where git finds its route.
fn route_url() -> String {
    format!(
        "http://127.0.0.1:{}{GIT_ROUTE_PATH}",
        jail::settings::PROXY_PORT
    )
}

/// `gitClone`.
pub(in crate::bodies::toolbox) async fn clone(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let url = read_url(work.text("url").unwrap_or_default())?;
    let directory = directory(work, &url)?;
    let repository = Repository::stage_clone(work, &directory).await?;
    let credential = credential(work, &url, false)?;
    let route = GitRoute::new(url.clone(), GitService::UploadPack, credential.as_ref());
    let route = Arc::new(route);
    // Git keeps the true address in its settings and is led to our route.
    let instead = format!("url.{}.insteadOf={url}", route_url());
    let depth = work.number("depth").unwrap_or(1);
    let depth_flag = format!("--depth={depth}");
    let branch = work
        .text("branch")
        .map(|branch| format!("--branch={branch}"));
    let mut arguments = vec![
        "-c",
        &instead,
        "-c",
        // Attack: a link in the repository that leads out of the folder. It becomes a
        // plain file.
        "core.symlinks=false",
        "clone",
        "--quiet",
        "--no-recurse-submodules",
        "--single-branch",
        "--no-tags",
        // No templates: they could bring hooks.
        "--template=",
    ];
    if depth > 0 {
        arguments.push(&depth_flag);
    }
    arguments.extend(branch.as_deref());
    arguments.extend(["--", url.as_str(), &directory]);
    let call = GitCall {
        arguments: &arguments,
        stdin: "",
        writes: true,
    };
    let output = repository.run_by(call, Arc::clone(&route)).await?;
    if output.code != 0 {
        return Err(fail(&output, &route));
    }
    let (bytes_received, _) = repository.network_bytes();
    let arguments = ["-C", &directory, "rev-parse", "--verify", "--quiet", "HEAD"];
    let commit = repository.run(GitCall::reading(&arguments)).await?;
    let commit = (commit.code == 0).then(|| commit.stdout.text.trim_end().to_owned());
    let arguments = [
        "-C",
        &directory,
        "symbolic-ref",
        "--quiet",
        "--short",
        "HEAD",
    ];
    let branch = repository.run(GitCall::reading(&arguments)).await?;
    let branch = (branch.code == 0).then(|| branch.stdout.text.trim_end().to_owned());
    let settings = settings(&url, branch.as_deref());
    let cloned = repository.finish_clone(&directory, &settings).await?;
    let result = json!({
        "directory": directory, "commit": commit, "branch": branch,
        "bytesReceived": bytes_received,
    });
    Ok(RunResult::done(with_files(result, &cloned)))
}

/// A result with the files that its caller should know of.
fn with_files(mut result: Value, cloned: &ClonedFiles) -> Value {
    for (name, paths) in [
        ("protected", &cloned.protected),
        ("leftOut", &cloned.left_out),
    ] {
        if !paths.is_empty() {
            let shown = paths.iter().take(limit::CHANGES_SHOWN_MAX);
            if let Some(members) = result.as_object_mut() {
                members.insert(name.to_owned(), shown.cloned().collect());
            }
        }
    }
    result
}

/// The settings of a clone, in our own words: what git wrote while it read a stranger's bytes
/// does not come to the operator's folder.
fn settings(url: &Url, branch: Option<&str>) -> String {
    let mut settings = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\t\
         logallrefupdates = true\n\tsymlinks = false\n[remote \"origin\"]\n\turl = {url}\n"
    );
    // A name with a quote or a backslash would end the section.
    if let Some(branch) = branch.filter(|branch| !branch.contains(['"', '\\', '\n'])) {
        settings.push_str(&format!(
            "\tfetch = +refs/heads/{branch}:refs/remotes/origin/{branch}\n\
             [branch \"{branch}\"]\n\tremote = origin\n\tmerge = refs/heads/{branch}\n"
        ));
    }
    settings
}

/// `gitFetch`.
pub(in crate::bodies::toolbox) async fn fetch(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let repository = Repository::open_for_writing(work).await?;
    let url = origin(&repository).await?;
    let before = references(&repository).await?;
    let branch = work.text("branch").unwrap_or("*");
    // The `+` takes a branch that was rewritten there. Only our copy of it changes.
    let spec = format!("+refs/heads/{branch}:refs/remotes/origin/{branch}");
    let credential = credential(work, &url, false)?;
    let route = GitRoute::new(url, GitService::UploadPack, credential.as_ref());
    let route = Arc::new(route);
    let address = route_url();
    let arguments = [
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--end-of-options",
        &address,
        &spec,
    ];
    let call = GitCall {
        arguments: &arguments,
        stdin: "",
        writes: true,
    };
    let output = repository.run_by(call, Arc::clone(&route)).await?;
    if output.code != 0 {
        return Err(fail(&output, &route));
    }
    let (bytes_received, _) = repository.network_bytes();
    let after = references(&repository).await?;
    let updated: Vec<Value> = after
        .into_iter()
        .filter(|reference| !before.contains(reference))
        .map(|(name, commit)| json!({"name": name, "commit": commit}))
        .collect();
    repository.finish().await?;
    Ok(RunResult::done(json!({
        "updated": updated, "bytesReceived": bytes_received,
    })))
}

/// `gitPush`.
pub(in crate::bodies::toolbox) async fn push(
    work: &ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    let repository = Repository::open_for_writing(work).await?;
    let url = origin(&repository).await?;
    let branch = match work.text("branch") {
        Some(branch) => branch.to_owned(),
        None => {
            let arguments = ["symbolic-ref", "--quiet", "--short", "HEAD"];
            let head = repository.succeed(GitCall::reading(&arguments)).await?;
            head.stdout.text.trim_end().to_owned()
        }
    };
    let force = if work.flag("force") { "+" } else { "" };
    let spec = format!("{force}refs/heads/{branch}:refs/heads/{branch}");
    let credential = credential(work, &url, true)?;
    let route = GitRoute::new(url, GitService::ReceivePack, credential.as_ref());
    let route = Arc::new(route);
    let address = route_url();
    let arguments = [
        "push",
        "--porcelain",
        "--no-verify",
        "--no-signed",
        "--recurse-submodules=no",
        "--end-of-options",
        &address,
        &spec,
    ];
    let call = GitCall {
        arguments: &arguments,
        stdin: "",
        writes: true,
    };
    let output = repository.run_by(call, Arc::clone(&route)).await?;
    if output.code != 0 {
        return Err(fail(&output, &route));
    }
    let (_, bytes_sent) = repository.network_bytes();
    let summary = output
        .stdout
        .text
        .lines()
        .find(|line| line.contains("refs/heads/"));
    let summary = summary.unwrap_or_default().replace('\t', " ");
    // `=` marks a reference that was up to date.
    let pushed = !summary.starts_with('=');
    repository.finish().await?;
    Ok(RunResult::done(json!({
        "branch": branch, "pushed": pushed, "bytesSent": bytes_sent, "summary": summary,
    })))
}

/// An address of a repository: https, no user, no password. Whether its host may be reached
/// is decided hop by hop.
fn read_url(raw_url: &str) -> Result<Url, CallRefusal> {
    let url = Url::parse(raw_url).map_err(|_| refuse("`url` is not an address"))?;
    if url.scheme() != "https" {
        return Err(refuse(
            "`url` must begin with https://; ssh and other ways are not supported",
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("`url` holds a user or a password; use a connection"));
    }
    if url.query().is_some() || url.fragment().is_some() || url.path().trim_matches('/').is_empty()
    {
        return Err(refuse("`url` does not name a repository"));
    }
    Ok(url)
}

/// The credential of the connection that the call names, for its very host. Git never sees it:
/// our side of the route adds it.
fn credential(
    work: &ToolboxWork<'_>,
    url: &Url,
    writes: bool,
) -> Result<Option<GitCredential>, CallRefusal> {
    let Some(name) = work.text("connection") else {
        return Ok(None);
    };
    // Unknown, another's, of another kind or for another host: the same words.
    let unknown = || {
        refuse(&format!(
            "there is no connection `{name}` to this host for you"
        ))
    };
    let mut connections = work.now.config.connections.iter();
    let found = connections.find(|connection| {
        connection.name == name
            && connection.kind == ConnectionKind::Git
            && connection.serves(&work.request.caller, &work.groups)
            // The port as well: a credential for one service must not reach another on
            // the same host.
            && Some(connection.port) == url.port_or_known_default()
            && url
                .host()
                .is_some_and(|host| host.to_owned() == connection.host)
    });
    let found = found.ok_or_else(unknown)?;
    if writes && !found.write {
        return Err(refuse(&format!(
            "the connection `{name}` does not allow pushes"
        )));
    }
    let secret = connections::credential(work.engine.variable_source(), &work.masker, found)?;
    let Some(secret) = secret else {
        return Ok(None);
    };
    let user = found.user.clone().unwrap_or_else(|| "git".to_owned());
    Ok(Some(GitCredential { user, secret }))
}

/// The new folder: one name or several, below the folder of the call.
fn directory(work: &ToolboxWork<'_>, url: &Url) -> Result<String, CallRefusal> {
    let named = work.text("directory").map(str::to_owned);
    let last = || {
        let last = url
            .path_segments()
            .and_then(|mut parts| parts.rfind(|part| !part.is_empty()));
        let last = last.unwrap_or_default();
        last.strip_suffix(".git").unwrap_or(last).to_owned()
    };
    let directory = named.unwrap_or_else(last);
    let path = Path::new(&directory);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    // A name that begins with a dash would be read as an option.
    let is_safe = host::files::untouchable(path).is_none() && !directory.starts_with('-');
    match is_plain && is_safe && !directory.is_empty() {
        true => Ok(directory),
        false => Err(refuse(
            "`directory` is not a new folder below the folder of the call",
        )),
    }
}

/// The address of the repository's origin, from its settings, which anyone wrote.
async fn origin(repository: &Repository<'_, '_>) -> Result<Url, CallRefusal> {
    let arguments = ["config", "--local", "--get", "remote.origin.url"];
    let output = repository.run(GitCall::reading(&arguments)).await?;
    let found = output.stdout.text.trim_end().to_owned();
    match output.code {
        0 => read_url(&found),
        _ => Err(failed("the repository has no origin")),
    }
}

async fn references(repository: &Repository<'_, '_>) -> Result<Vec<(String, String)>, CallRefusal> {
    let format = "--format=%(refname:short)%1f%(objectname)";
    let arguments = [
        "for-each-ref",
        "--count=10000",
        format,
        "refs/remotes/origin",
    ];
    let output = repository.succeed(GitCall::reading(&arguments)).await?;
    let pairs = output.stdout.text.lines().filter_map(|line| {
        let (name, commit) = line.split_once('\u{1f}')?;
        Some((name.to_owned(), commit.to_owned()))
    });
    Ok(pairs.collect())
}

/// Why git failed. It only knows the status of its route, which is the same for every cause,
/// so the cause is told in its place: what the guard decided, or what the host answered.
fn fail(output: &GitOutput, route: &GitRoute) -> CallRefusal {
    let said = match route.unreached() {
        Some(unreached) => told(&unreached),
        None => output.stderr.replace(&route_url(), "the repository"),
    };
    let said = match said.trim() {
        "" => "git ended with an error and said nothing".to_owned(),
        said => said.to_owned(),
    };
    CallRefusal::with_status(Status::Failed, CallError::new(Reason::GitFailed, said))
}

/// What a caller is told of a repository that was not reached: what `fetch` would say, and the
/// setting that would help.
fn told(unreached: &GitUnreached) -> String {
    let GitUnreached {
        reason,
        sentence,
        host,
        status,
    } = unreached;
    // The texts of TLS may quote what the other side sent.
    let sentence = text::one_line(sentence);
    let said = match (*reason, status) {
        ("host-not-in-allowlist" | "network-blocked", _) => {
            format!("`{host}` is not in `toolbox.hosts`")
        }
        ("tls", _) if sentence.contains("certificate") => format!(
            "{sentence}; if the host is trusted, the operator names its authority in \
             `network.ca_file`"
        ),
        (_, Some(401 | 403 | 404)) => format!(
            "{sentence}; a repository that is not public needs a `connection` with a credential"
        ),
        // The sentence has the fix, where there is one.
        _ => sentence,
    };
    format!("{said} ({reason})")
}
