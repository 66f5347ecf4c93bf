//! The git tools: the git binary in the jail, with every way to run something else shut.
//!
//! A repository may have been written by anyone: its config, attributes and objects are
//! input. Hooks, filters, textconv, external diffs, pagers, editors, credential helpers,
//! signing and file system monitors are overridden on the command line; filters have names,
//! so the names are read first. What is left runs in the jail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::egress::git::{GIT_ROUTE, GitRoute};
use host::files::changes::{self, ChangeRule, FileChange};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::sync::lock;
use model::text;
use serde_json::{Value, json};

use crate::bodies::toolbox::command::{environment, run_jailed};
use crate::bodies::toolbox::{StagedFolder, ToolboxWork, folder_of};
use crate::changes::{Staging, note_copied, note_left_out};
use crate::jailed::{Captured, JailedCommand, JailedNetwork, ProcessEnd, WorkFolder};
use crate::limit;
use crate::refusal::CallRefusal;
use crate::run::RunResult;
use crate::scratch::Scratch;

mod read;
mod remote;
mod write;

pub(super) use read::{diff, log, show, status};
pub(super) use remote::{clone, fetch, push};
pub(super) use write::{add, branch, commit};

/// Settings that hold whatever the repository says.
const SETTINGS: [&str; 31] = [
    "advice.detachedHead=false",
    "color.ui=false",
    "commit.gpgSign=false",
    "commit.template=/dev/null",
    "core.askPass=/bin/false",
    "core.attributesFile=/dev/null",
    "core.editor=/bin/false",
    "core.excludesFile=/dev/null",
    "core.fsmonitor=false",
    "core.gitProxy=/bin/false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    // Attack: names that mean `.git` on other file systems.
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.sshCommand=/bin/false",
    "credential.helper=",
    "fetch.fsckObjects=true",
    "fetch.recurseSubmodules=false",
    // Nothing works on in the background after the call.
    "gc.auto=0",
    "gpg.program=/bin/false",
    "http.followRedirects=false",
    "http.proxy=",
    "maintenance.auto=false",
    // Only the way to our own route stays open.
    "protocol.allow=never",
    "protocol.http.allow=always",
    "safe.bareRepository=explicit",
    // The folder may belong to another user. Nothing in it is run, so git need not refuse
    // it.
    "safe.directory=*",
    "submodule.recurse=false",
    "tag.gpgSign=false",
    // Attack: a server sends git to another address for a part of the objects.
    "transfer.bundleURI=false",
    "transfer.fsckObjects=true",
];

/// A repository that git may look at.
#[derive(Debug)]
pub(super) struct Repository<'a, 'w> {
    work: &'a ToolboxWork<'w>,
    git: String,
    folder: WorkFolder,
    /// Where its changes go, if the folder is the operator's.
    staging: Option<Staging>,
    /// Where the repository is.
    start: PathBuf,
    /// Settings of this repository that are overridden.
    overrides: Vec<String>,
    /// What every git of the call has as its home.
    own: Scratch,
    invocations: AtomicUsize,
    /// Bytes received and sent.
    network: Mutex<(u64, u64)>,
}

/// What a clone brought into the operator's folder that its caller should know.
#[derive(Debug, Default)]
pub(super) struct ClonedFiles {
    /// What other programs run or obey without being asked.
    pub(super) protected: Vec<String>,
    /// What was not copied.
    pub(super) left_out: Vec<String>,
}

/// What one git does.
pub(super) struct GitCall<'s> {
    pub(super) arguments: &'s [&'s str],
    pub(super) stdin: &'s str,
    /// Whether it may change the repository.
    pub(super) writes: bool,
}

impl<'s> GitCall<'s> {
    pub(super) fn reading(arguments: &'s [&'s str]) -> GitCall<'s> {
        GitCall {
            arguments,
            stdin: "",
            writes: false,
        }
    }

    pub(super) fn writing(arguments: &'s [&'s str], stdin: &'s str) -> GitCall<'s> {
        GitCall {
            arguments,
            stdin,
            writes: true,
        }
    }
}

/// What came of it.
pub(super) struct GitOutput {
    pub(super) stdout: Captured,
    pub(super) code: i32,
    pub(super) stderr: String,
}

impl<'a, 'w> Repository<'a, 'w> {
    /// The repository that the argument `repository` names, to be read. Its settings are
    /// read, so that what they would run can be overridden.
    pub(super) async fn open(work: &'a ToolboxWork<'w>) -> Result<Repository<'a, 'w>, CallRefusal> {
        let staged = StagedFolder {
            folder: WorkFolder::ReadOnly(work.folder_path()?),
            staging: None,
        };
        let start = work.start("repository", staged.folder.path())?;
        let mut repository = Repository::at(work, staged, start)?;
        repository.read_overrides().await?;
        Ok(repository)
    }

    /// The same, to be changed. What is changed in an operator's folder is there after
    /// [`Repository::finish`].
    pub(super) async fn open_for_writing(
        work: &'a ToolboxWork<'w>,
    ) -> Result<Repository<'a, 'w>, CallRefusal> {
        let staged = work.stage().await?;
        let start = work.start("repository", staged.folder.path())?;
        let mut repository = Repository::at(work, staged, start)?;
        repository.read_overrides().await?;
        Ok(repository)
    }

    /// A place for a clone: the folder of the call, where the new folder is not there yet.
    pub(super) async fn stage_clone(
        work: &'a ToolboxWork<'w>,
        directory: &str,
    ) -> Result<Repository<'a, 'w>, CallRefusal> {
        let staged = work.stage().await?;
        let start = staged.folder.path().to_owned();
        // Does not follow links: a link in that place counts as there.
        if start.join(directory).symlink_metadata().is_ok() {
            return Err(refuse("`directory` is there already"));
        }
        // Attack: into `refs`, in a folder that programs filled with all but that.
        let is_bare =
            |staging: &Staging| host::files::makes_bare(staging.lower(), Path::new(directory));
        if staged.staging.as_ref().is_some_and(is_bare) {
            return Err(refuse(
                "`directory` lies in a repository without a working tree, or would make the \
                 folder around it one",
            ));
        }
        Repository::at(work, staged, start)
    }

    fn at(
        work: &'a ToolboxWork<'w>,
        staged: StagedFolder,
        start: PathBuf,
    ) -> Result<Repository<'a, 'w>, CallRefusal> {
        Ok(Repository {
            git: work.engine.jailer().find("git")?,
            own: Scratch::new(work.engine.home(), &work.call_id),
            work,
            folder: staged.folder,
            staging: staged.staging,
            start,
            overrides: Vec::new(),
            invocations: AtomicUsize::new(0),
            network: Mutex::default(),
        })
    }

    /// Bytes received from hosts, and sent to them.
    pub(super) fn network_bytes(&self) -> (u64, u64) {
        *lock(&self.network)
    }

    /// Copies what git changed into the operator's folder: of `.git` only what git keeps
    /// there while it works.
    pub(super) async fn finish(self) -> Result<(), CallRefusal> {
        self.finish_switch(&[]).await
    }

    /// The same after git wrote files of the working tree, which are named from the root of
    /// the repository. All of them are copied, or nothing is.
    // Without that the index would have a file that the folder lacks, and the next commit of
    // all changes would delete it.
    pub(super) async fn finish_switch(mut self, written: &[String]) -> Result<(), CallRefusal> {
        let Some(staging) = self.staging.take() else {
            return Ok(());
        };
        let repository = self.start.strip_prefix(self.folder.path());
        let repository = repository.map(Path::to_owned).unwrap_or_default();
        let needed: Vec<_> = written.iter().map(|path| repository.join(path)).collect();
        let rule = ChangeRule::Git { repository };
        copy_back(self.work, staging, rule, needed)
            .await
            .map(|_| ())
    }

    /// Copies a clone into the operator's folder, with settings of our own. What it brought
    /// that other programs run or obey without being asked.
    pub(super) async fn finish_clone(
        mut self,
        directory: &str,
        settings: &str,
    ) -> Result<ClonedFiles, CallRefusal> {
        let Some(staging) = self.staging.take() else {
            return Ok(ClonedFiles::default());
        };
        let folder = PathBuf::from(directory);
        let config = staging.tree().join(&folder).join(".git").join("config");
        // Attack: git ran on what a stranger sent; what it left is no link to elsewhere.
        let is_plain = config.symlink_metadata().is_ok_and(|about| about.is_file());
        let written = is_plain.then(|| std::fs::write(&config, settings));
        if !matches!(written, Some(Ok(()))) {
            return Err(failed("the clone has no settings"));
        }
        let rule = ChangeRule::Clone {
            folder: folder.clone(),
        };
        let root = staging.lower().to_owned();
        let (copied, left_out) = copy_back(self.work, staging, rule, Vec::new()).await?;
        let protected = protected_parts(&copied, &folder, &root);
        let left_out = left_out.into_keys().collect();
        if !protected.is_empty() {
            let shown = protected.iter().take(limit::CHANGES_EVENTS_MAX);
            self.work.powers.note(json!({
                "kind": "file", "function": self.work.request.target.name(),
                "protected": shown.collect::<Vec<_>>(), "changes": protected.len(),
            }));
        }
        Ok(ClonedFiles {
            protected,
            left_out,
        })
    }

    /// Whether what git changes is copied into the operator's folder at the end.
    pub(super) fn is_staged(&self) -> bool {
        self.staging.is_some()
    }

    /// Overrides each filter by its name: there is no other way to switch them off.
    async fn read_overrides(&mut self) -> Result<(), CallRefusal> {
        let arguments = ["config", "--null", "--name-only", "--list"];
        let listed = self.run(GitCall::reading(&arguments)).await?;
        // A filter beyond the cut would stay switched on.
        if listed.stdout.is_cut {
            return Err(failed("the settings of the repository are too long"));
        }
        let names: BTreeSet<&str> = listed
            .stdout
            .text
            .split('\0')
            .filter_map(|key| key.strip_prefix("filter."))
            .filter_map(|key| key.rsplit_once('.'))
            .map(|(name, _)| name)
            .collect();
        if names.len() > limit::GIT_FILTERS_MAX {
            return Err(failed("the repository has too many filters"));
        }
        for name in names {
            // `-c` splits at the first `=`, so such a name could not be overridden.
            if name.contains('=') || name.contains('\n') {
                return Err(failed(
                    "a filter of the repository has a name that cannot be switched off",
                ));
            }
            for (key, value) in [
                ("clean", ""),
                ("smudge", ""),
                ("process", ""),
                // A required filter that gives nothing would make git fail.
                ("required", "false"),
            ] {
                self.overrides.push(format!("filter.{name}.{key}={value}"));
            }
        }
        Ok(())
    }

    /// The staged folder for another program: the kernel wants its own part empty.
    fn again(&self, staging: &Staging) -> Result<WorkFolder, CallRefusal> {
        staging
            .empty_work()
            .map_err(|error| failed(&format!("the folder cannot be given to git: {error}")))?;
        Ok(folder_of(staging))
    }

    /// Runs git and expects that it succeeds.
    pub(super) async fn succeed(&self, call: GitCall<'_>) -> Result<GitOutput, CallRefusal> {
        let output = self.run(call).await?;
        match output.code {
            0 => Ok(output),
            _ => Err(failed(&output.stderr)),
        }
    }

    /// Runs git without a network. What it says is cleaned; how it ended is for the caller to
    /// judge.
    pub(super) async fn run(&self, call: GitCall<'_>) -> Result<GitOutput, CallRefusal> {
        self.run_with(call, None).await
    }

    /// Runs git with one route and nothing else of a network.
    pub(super) async fn run_by(
        &self,
        call: GitCall<'_>,
        route: Arc<GitRoute>,
    ) -> Result<GitOutput, CallRefusal> {
        let Some(mut network) = self.work.network()? else {
            let message = "no host is listed in `toolbox.hosts`, or none is left for this caller";
            return Err(CallRefusal::new(CallError::new(
                Reason::HostDenied,
                message,
            )));
        };
        network.settings.routes_only = true;
        let routes = &mut network.settings.routes;
        routes.insert(GIT_ROUTE.to_owned(), route);
        self.run_with(call, Some(network)).await
    }

    async fn run_with(
        &self,
        call: GitCall<'_>,
        network: Option<JailedNetwork>,
    ) -> Result<GitOutput, CallRefusal> {
        let before = self.invocations.fetch_add(1, Ordering::Relaxed);
        if before >= limit::GIT_INVOCATIONS_MAX {
            return Err(failed("the call would start git too often"));
        }
        // On the command line, where a setting counts before every file of the
        // repository.
        let mut words = vec![self.git.clone(), "--no-pager".to_owned()];
        let settings = SETTINGS.iter().map(|setting| (*setting).to_owned());
        for setting in settings.chain(self.overrides.iter().cloned()) {
            words.extend(["-c".to_owned(), setting]);
        }
        words.extend(call.arguments.iter().map(|word| (*word).to_owned()));
        let folder = match (&self.staging, call.writes) {
            // Also what only looks must see what was changed.
            (Some(staging), _) => self.again(staging)?,
            (None, true) => self.folder.clone(),
            (None, false) => WorkFolder::ReadOnly(self.folder.path().to_owned()),
        };
        let mut variables = variables(self.work, self.folder.path());
        // Git would otherwise write a refreshed index while it only looks.
        if !call.writes {
            variables.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
        }
        let command = JailedCommand {
            command: words,
            environment: variables,
            stdin: call.stdin.as_bytes().to_vec(),
            own_folder: self.own.path().to_path_buf(),
            folder,
            start: self.start.clone(),
            time: Duration::from_secs(limit::GIT_SECONDS_MAX),
            network,
            stop: None,
        };
        let (ran, stdout, stderr) = run_jailed(self.work, command).await?;
        {
            let mut bytes = lock(&self.network);
            for event in &ran.egress {
                bytes.0 = bytes.0.saturating_add(event.bytes);
                bytes.1 = bytes.1.saturating_add(event.sent_bytes);
            }
        }
        let code = match &ran.end {
            ProcessEnd::Exited(code) => *code,
            ProcessEnd::TimedOut => {
                let message = "git took too long and was stopped";
                let error = CallError::passing(Reason::ProcessTimeout, message);
                return Err(CallRefusal::with_status(Status::Failed, error));
            }
            other => return Err(failed(&other.why().unwrap_or_default())),
        };
        Ok(GitOutput {
            stdout,
            code,
            stderr: clean(&stderr.text),
        })
    }
}

/// What a clone brought that other programs run or obey without being asked. Of a repository
/// without a working tree the folder is named. `root` has the folder of the clone.
fn protected_parts(copied: &[FileChange], folder: &Path, root: &Path) -> Vec<String> {
    let data = folder.join(".git");
    let paths = copied.iter().map(|change| Path::new(&change.path));
    let named = paths.filter_map(|path| {
        let inside = path.strip_prefix(folder).ok()?;
        if path.starts_with(&data) {
            return None;
        }
        if host::files::untouchable(inside).is_some() {
            return Some(path);
        }
        // Without this file it is none. The clone itself is found by its `.git`.
        let is_head = path.file_name()?.eq_ignore_ascii_case("HEAD");
        let place = path.parent().filter(|place| is_head && *place != folder)?;
        host::files::is_bare_repository(&root.join(place)).then_some(place)
    });
    let named: BTreeSet<_> = named.map(|path| path.display().to_string()).collect();
    named.into_iter().collect()
}

/// Copies what git changed into the operator's folder, and notes each file. Nothing is copied
/// if something that is needed would be left out.
async fn copy_back(
    work: &ToolboxWork<'_>,
    staging: Staging,
    rule: ChangeRule,
    needed: Vec<PathBuf>,
) -> Result<(Vec<FileChange>, BTreeMap<String, String>), CallRefusal> {
    let folder = work.policy.fs_base_path.clone().unwrap_or_default();
    let home = work.settings.home.clone();
    let copying = move || {
        let collected = staging.collect(&rule);
        let mut collected =
            collected.map_err(|fault| failed(&format!("nothing was copied: {fault}")))?;
        // What git itself leaves in its data and does not need is no one's concern.
        let own = rule.own_data();
        let is_told = |path: &str| {
            !own.as_ref()
                .is_some_and(|own| Path::new(path).starts_with(own))
        };
        collected.left_out.retain(|path, _| is_told(path));
        if let Some(refusal) = incomplete(&collected.left_out, &needed) {
            return Err(refusal);
        }
        let (tree, mut changes) = (staging.tree(), collected.changes);
        let applied = changes::apply(&folder, home.as_ref(), &tree, &changes, &rule);
        let ended = applied.map(|_| ()).map_err(|stop| {
            changes.truncate(stop.copied);
            failed(&stop.to_string())
        });
        Ok((changes, collected.left_out, ended))
    };
    let copied = tokio::task::spawn_blocking(copying).await;
    let copied = copied.map_err(|_| failed("the folder could not be changed"))?;
    let (mut copied, left_out, ended) = copied?;
    // Files that people see before the data of the repository: of those the record names as
    // many as it has room for.
    copied.sort_by_key(|change| Path::new(&change.path).iter().any(|name| name == ".git"));
    let function = work.request.target.name();
    note_copied(&work.powers, function, &copied);
    note_left_out(&work.powers, function, &left_out);
    ended.map(|()| (copied, left_out))
}

/// The refusal if something that is needed is left out.
fn incomplete(left_out: &BTreeMap<String, String>, needed: &[PathBuf]) -> Option<CallRefusal> {
    let is_missing = |path: &&PathBuf| left_out.keys().any(|left| path.starts_with(left));
    let missing: Vec<_> = needed.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return None;
    }
    let shown = missing.iter().take(limit::CHANGES_SUMMARY_FILES_MAX);
    let names: Vec<_> = shown
        .map(|path| {
            let name = path.to_string_lossy();
            format!(
                "`{}`",
                text::elided(&name, limit::CHANGES_SUMMARY_NAME_CHARS_MAX)
            )
        })
        .collect();
    let more = match missing.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "the branches differ in what no tool changes in this folder: {}{more}; nothing was \
         copied, switch by hand",
        names.join(", ")
    );
    let error = CallError::new(Reason::ChangesProtected, message);
    Some(CallRefusal::with_status(Status::Failed, error))
}

/// The variables of git: nothing of the machine's or a person's settings, no prompt, no
/// protocol but the one of our own route.
fn variables(work: &ToolboxWork<'_>, folder: &Path) -> BTreeMap<String, String> {
    let mut variables = environment(work);
    // Git must not find a repository above the folder of the call.
    let ceiling = folder.parent().unwrap_or(folder).display().to_string();
    for (name, value) in [
        ("GIT_ALLOW_PROTOCOL", "http"),
        ("GIT_ASKPASS", "/bin/false"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_CEILING_DIRECTORIES", ceiling.as_str()),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_EDITOR", "/bin/false"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_PROTOCOL_FROM_USER", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    variables
}

/// The failure of git, in words that are safe to show.
pub(super) fn failed(why: &str) -> CallRefusal {
    let why = match why.trim() {
        "" => "git ended with an error and said nothing",
        why => why,
    };
    let error = CallError::new(Reason::GitFailed, clean(why));
    CallRefusal::with_status(Status::Failed, error)
}

/// A result in which nothing steers a terminal. Messages, names and files of a repository are
/// anyone's words, and clients print them.
pub(super) fn plain(ran: Result<RunResult, CallRefusal>) -> Result<RunResult, CallRefusal> {
    let mut ran = ran?;
    if let Some(value) = &mut ran.value {
        make_plain(value);
    }
    Ok(ran)
}

fn make_plain(value: &mut Value) {
    match value {
        Value::String(text) => {
            if text.chars().any(char::is_control) {
                *text = plain_text(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_plain),
        Value::Object(members) => members.values_mut().for_each(make_plain),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Line breaks and tabs stay; every other control character is shown as one that is not known.
fn plain_text(text: &str) -> String {
    let lines = text.split("\r\n").map(|line| {
        let signs = line.chars().map(|sign| match sign {
            '\n' | '\t' => sign,
            sign if sign.is_control() => char::REPLACEMENT_CHARACTER,
            sign => sign,
        });
        signs.collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\r\n")
}

/// What git or a far side said, without escapes, short.
fn clean(words: &str) -> String {
    let lines: Vec<_> = words
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(text::one_line)
        .collect();
    text::elided(&lines.join("; "), limit::GIT_ERROR_CHARS_MAX)
}

/// Refuses arguments that only make sense together, or not at all.
pub(super) fn refuse(message: &str) -> CallRefusal {
    CallRefusal::new(CallError::new(Reason::ArgumentSchema, message))
}
