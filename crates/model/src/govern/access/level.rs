//! Access levels: which categories of tools a caller has, and six constraints on what
//! those tools may do. A level narrows a call's policy and never widens it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::document::NetworkMode;
use crate::govern::access::command;
use crate::govern::action::{Action, Actions, ListUse};
use crate::govern::rules::Effect;
use crate::policy::EffectivePolicy;
use crate::text::elided;

crate::words! {
    /// A level. Later is wider; `custom` is not comparable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum AccessLevel {
        /// No access to anything outside the workspace.
        Sandboxed = "sandboxed",
        /// Listed hosts, and approval for important actions.
        Restricted = "restricted",
        /// Ordinary work.
        Standard = "standard",
        /// Everything the documents declare.
        Elevated = "elevated",
        /// Only what the operator sets.
        Custom = "custom",
    }
}

crate::words! {
    /// Which folders a call sees. Later is wider.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FileScope {
        /// The workspace.
        WorkspaceOnly = "workspace_only",
        /// Folders under the home folder.
        ProjectDirectory = "project_directory",
        /// Whatever the operator's file and the document name.
        Full = "full",
    }
}
crate::words! {
    /// The isolation a tool needs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CodeIsolation {
        /// The sandbox, a jail with namespaces of its own, or a container.
        Containerized = "containerized",
        /// Also a process behind fewer walls.
        Any = "any",
    }
}
crate::words! {
    /// The network access of a call. Later is wider.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NetworkScope {
        /// Nothing.
        None = "none",
        /// Hosts that are listed by name.
        AllowlistOnly = "allowlist_only",
        /// Whatever its policy says.
        Open = "open",
    }
}
crate::words! {
    /// The access of a call to repositories. Later is wider.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum GitScope {
        /// Reaches no other repository: neither clones, fetches nor pushes.
        LocalOnly = "local_only",
        /// Does not push.
        ReadAndBranch = "read_and_branch",
        /// Everything.
        Full = "full",
    }
}
crate::words! {
    /// Whether a call may run commands. Later is wider.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TerminalScope {
        /// None.
        None = "none",
        /// Single commands that are listed.
        RestrictedCommands = "restricted_commands",
        /// Any.
        Full = "full",
    }
}

/// The six constraints of a level, and the commands `restricted_commands` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraints {
    /// Which folders.
    pub files: FileScope,
    /// The isolation of code.
    pub code: CodeIsolation,
    /// Network access.
    pub network: NetworkScope,
    /// Access to repositories.
    pub git: GitScope,
    /// Whether commands are run.
    pub terminal: TerminalScope,
    /// Which ones, under `restricted_commands`.
    pub commands: BTreeSet<String>,
    /// Actions that are asked about.
    pub requires_approval: BTreeSet<Action>,
}

/// The operator's changes to the constraints of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstraintChanges {
    /// Which folders.
    pub files: Option<FileScope>,
    /// The isolation of code.
    pub code: Option<CodeIsolation>,
    /// Network access.
    pub network: Option<NetworkScope>,
    /// Access to repositories.
    pub git: Option<GitScope>,
    /// Whether commands are run.
    pub terminal: Option<TerminalScope>,
    /// Which ones.
    pub commands: Option<BTreeSet<String>>,
    /// Actions that are asked about.
    pub requires_approval: Option<BTreeSet<Action>>,
}

/// The input of constraints, beside the policy.
#[derive(Clone, Copy, Debug)]
pub struct LevelInput<'a> {
    /// The tool's category.
    pub category: &'a str,
    /// The actions of the call.
    pub actions: &'a [Action],
    /// The arguments.
    pub arguments: &'a Map<String, Value>,
    /// Whether it runs in the sandbox, in a jail with namespaces of its own, or in a
    /// container.
    pub contained: bool,
}

/// Commands of `restricted_commands` unless the operator lists others.
pub const COMMANDS_DEFAULT: [&str; 10] = [
    "cat", "diff", "git", "grep", "head", "ls", "pwd", "sort", "tail", "wc",
];

impl AccessLevel {
    /// The categories of tools that come with a level, in capitals; nothing
    /// means all. A tool without a category, or with one that is not known
    /// here, comes with `elevated` only.
    #[must_use]
    pub fn categories(self) -> Option<&'static [&'static str]> {
        match self {
            AccessLevel::Sandboxed => Some(&SANDBOXED),
            AccessLevel::Restricted => Some(&RESTRICTED),
            AccessLevel::Standard => Some(&STANDARD),
            AccessLevel::Elevated => None,
            AccessLevel::Custom => Some(&[]),
        }
    }

    /// The constraints of a level. Those of `custom` are the tightest, until the
    /// operator changes them.
    #[must_use]
    pub fn constraints(self) -> Constraints {
        let (files, network, git, terminal) = match self {
            AccessLevel::Sandboxed | AccessLevel::Custom => (
                FileScope::WorkspaceOnly,
                NetworkScope::None,
                GitScope::LocalOnly,
                TerminalScope::None,
            ),
            AccessLevel::Restricted => (
                FileScope::ProjectDirectory,
                NetworkScope::AllowlistOnly,
                GitScope::ReadAndBranch,
                TerminalScope::None,
            ),
            AccessLevel::Standard => (
                FileScope::ProjectDirectory,
                NetworkScope::Open,
                GitScope::Full,
                TerminalScope::RestrictedCommands,
            ),
            AccessLevel::Elevated => (
                FileScope::Full,
                NetworkScope::Open,
                GitScope::Full,
                TerminalScope::Full,
            ),
        };
        let asked: &[&str] = match self {
            AccessLevel::Restricted => &["deployment", "database_write"],
            AccessLevel::Sandboxed
            | AccessLevel::Standard
            | AccessLevel::Elevated
            | AccessLevel::Custom => &[],
        };
        let built_in = Actions::default();
        let expand = |word: &&str| built_in.expand(word, ListUse::Restrict).unwrap_or_default();
        Constraints {
            files,
            code: CodeIsolation::Containerized,
            network,
            git,
            terminal,
            commands: COMMANDS_DEFAULT
                .iter()
                .map(|word| (*word).to_owned())
                .collect(),
            requires_approval: asked.iter().flat_map(expand).collect(),
        }
    }
}

/// Categories that mean something here, for levels, actions or trust, whether or
/// not a tool has them, in capitals. A document may have another.
pub const CATEGORIES: [&str; 27] = [
    "AI",
    "ANALYTICS",
    "BROWSER",
    "CODE",
    "CODE_EXECUTION",
    "COMMUNICATION",
    "CRYPTO",
    "DATA",
    "DATABASE",
    "DATETIME",
    "DEPLOYMENT",
    "DESKTOP",
    "ENCODING",
    "FILE",
    "FILE_SYSTEM",
    "GIT",
    "MATH",
    "MEMORY",
    "MESSAGING",
    "PRODUCTIVITY",
    "SECURITY",
    "TERMINAL",
    "TEXT",
    "UTILITY",
    "VCS",
    "VERSION_CONTROL",
    "WEB",
];

const SANDBOXED: [&str; 14] = [
    "CODE",
    "CODE_EXECUTION",
    "CRYPTO",
    "DATA",
    "DATETIME",
    "ENCODING",
    "FILE",
    "FILE_SYSTEM",
    "MATH",
    "MEMORY",
    "SECURITY",
    "TEXT",
    "UTILITY",
    "VERSION_CONTROL",
];
const RESTRICTED: [&str; 15] = [
    "CODE",
    "CODE_EXECUTION",
    "CRYPTO",
    "DATA",
    "DATETIME",
    "ENCODING",
    "FILE",
    "FILE_SYSTEM",
    "MATH",
    "MEMORY",
    "SECURITY",
    "TEXT",
    "UTILITY",
    "VERSION_CONTROL",
    "WEB",
];
const STANDARD: [&str; 20] = [
    "AI",
    "ANALYTICS",
    "BROWSER",
    "CODE",
    "CODE_EXECUTION",
    "CRYPTO",
    "DATA",
    "DATETIME",
    "ENCODING",
    "FILE",
    "FILE_SYSTEM",
    "MATH",
    "MEMORY",
    "PRODUCTIVITY",
    "SECURITY",
    "TERMINAL",
    "TEXT",
    "UTILITY",
    "VERSION_CONTROL",
    "WEB",
];

/// What helps a caller whose command line is more than one command.
const SINGLE_COMMANDS: &str = "one call for each command, without pipes, redirections, variables or anything that starts another";

/// What constraints say against a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelObjection {
    /// It is denied or asked about.
    pub effect: Effect,
    /// For people.
    pub reason: String,
    /// What the caller can do about it; nothing if only another level helps.
    pub remedy: Option<&'static str>,
}

impl LevelObjection {
    fn denial(reason: String) -> LevelObjection {
        LevelObjection {
            effect: Effect::Deny,
            reason,
            remedy: None,
        }
    }
}

/// A policy narrowed by a level.
#[must_use]
pub fn narrow(policy: &EffectivePolicy, level: AccessLevel) -> EffectivePolicy {
    level.constraints().narrow(policy)
}

impl Constraints {
    /// A policy without everything that the constraints do not allow. Risk signals that
    /// grant nothing (`destructive`, class lists) stay.
    #[must_use]
    pub fn narrow(&self, policy: &EffectivePolicy) -> EffectivePolicy {
        let mut narrowed = policy.clone();
        match (self.network, policy.network) {
            (NetworkScope::Open, _) | (_, NetworkMode::Blocked) => {}
            (NetworkScope::None, _) => {
                narrowed.network = NetworkMode::Blocked;
                narrowed.hosts.clear();
            }
            // `*` names no host in particular.
            (NetworkScope::AllowlistOnly, NetworkMode::Allowlist) => {
                narrowed.hosts.retain(|host| !host.is_any());
            }
            (NetworkScope::AllowlistOnly, NetworkMode::Strict | NetworkMode::Open) => {
                // A list without hosts: the document names none, so nothing is left.
                narrowed.network = NetworkMode::Allowlist;
                narrowed.hosts.clear();
            }
        }
        // Both, also where only one was asked for: the folder is out of reach.
        if !self.reaches(policy.fs_base_path.as_deref()) {
            narrowed.file_read = false;
            narrowed.file_write = false;
        }
        narrowed
    }

    /// Whether a folder is in reach. By spelling only: the folder's handle confines
    /// files to it.
    fn reaches(&self, folder: Option<&str>) -> bool {
        let Some(folder) = folder else {
            return true;
        };
        match self.files {
            FileScope::WorkspaceOnly => false,
            FileScope::ProjectDirectory => {
                let absolute = folder.starts_with(['/', '\\', '~']) || folder.contains(':');
                !absolute && folder.split(['/', '\\']).all(|part| part != "..")
            }
            FileScope::Full => true,
        }
    }

    /// The tighter of two, in each.
    #[must_use]
    pub fn at_most(&self, other: &Constraints) -> Constraints {
        Constraints {
            files: self.files.min(other.files),
            code: self.code.min(other.code),
            network: self.network.min(other.network),
            git: self.git.min(other.git),
            terminal: self.terminal.min(other.terminal),
            // Fewer commands and more questions are the tighter ones.
            commands: &self.commands & &other.commands,
            requires_approval: &self.requires_approval | &other.requires_approval,
        }
    }

    /// The decision of the constraints that no policy can express.
    #[must_use]
    pub fn check(&self, input: &LevelInput<'_>) -> Option<LevelObjection> {
        let does = |word: &str| input.actions.iter().any(|action| action.word() == word);
        let deny = |why: &str| Some(LevelObjection::denial(why.to_owned()));
        if self.code == CodeIsolation::Containerized && !input.contained {
            return deny(
                "the caller's level allows only tools that run in the sandbox, in a jail with namespaces, or in a container",
            );
        }
        if self.network == NetworkScope::None && does("comms:external") {
            return deny("the caller's level has no network");
        }
        if self.git < GitScope::Full && does("vcs:push") {
            return deny("the caller's level does not allow a push");
        }
        let repository = input
            .actions
            .iter()
            .any(|action| action.category() == "vcs");
        if self.git == GitScope::LocalOnly && repository && does("external_data:request") {
            return deny("the caller's level does not allow other repositories");
        }
        // Looking at a job runs no command.
        let only_reads = input.actions.iter().all(Action::is_read);
        if !only_reads && input.category.eq_ignore_ascii_case("TERMINAL") {
            match self.terminal {
                TerminalScope::None => return deny("the caller's level has no terminal"),
                TerminalScope::RestrictedCommands => {
                    let refused = self.refused_command(input.arguments);
                    if refused.is_some() {
                        return refused;
                    }
                }
                TerminalScope::Full => {}
            }
        }
        // Questions last: every denial above is stronger.
        let asked = input
            .actions
            .iter()
            .find(|action| self.requires_approval.contains(action));
        asked.map(|action| {
            let reason = format!(
                "the caller's level asks before `{}`",
                elided(action.word(), 60)
            );
            LevelObjection {
                effect: Effect::Ask,
                ..LevelObjection::denial(reason)
            }
        })
    }

    /// One command of the list, with nothing in it that starts another.
    fn refused_command(&self, arguments: &Map<String, Value>) -> Option<LevelObjection> {
        let deny = |why: String| Some(LevelObjection::denial(why));
        // What the caller can do itself: another level would only widen what it may run.
        let single = |why: String| {
            Some(LevelObjection {
                remedy: Some(SINGLE_COMMANDS),
                ..LevelObjection::denial(why)
            })
        };
        // Invariant 8: a command that cannot be read cannot be on the list.
        let Some(command) = arguments.get("command").and_then(Value::as_str) else {
            return deny("the caller's level needs a `command` that can be checked".to_owned());
        };
        let words = match command::words(command) {
            Ok(words) => words,
            Err(why) => {
                return single(format!(
                    "the caller's level allows single commands only: {why}"
                ));
            }
        };
        let first = words.first().map(String::as_str).unwrap_or_default();
        if !self.commands.contains(first) {
            let shown = elided(first, 40);
            return deny(format!(
                "the command `{shown}` is not on the list of the caller's level"
            ));
        }
        let word = command::starter(&words)?;
        let shown = elided(word, 40);
        single(format!(
            "the caller's level takes single commands only: `{shown}` starts another"
        ))
    }
}

impl ConstraintChanges {
    /// Constraints with these changes applied.
    #[must_use]
    pub fn over(&self, under: Constraints) -> Constraints {
        let own = self.clone();
        Constraints {
            files: own.files.unwrap_or(under.files),
            code: own.code.unwrap_or(under.code),
            network: own.network.unwrap_or(under.network),
            git: own.git.unwrap_or(under.git),
            terminal: own.terminal.unwrap_or(under.terminal),
            commands: own.commands.unwrap_or(under.commands),
            requires_approval: own.requires_approval.unwrap_or(under.requires_approval),
        }
    }

    /// Both at once, the tighter where they differ: for a caller in two groups.
    #[must_use]
    pub fn with(&self, other: &ConstraintChanges) -> ConstraintChanges {
        ConstraintChanges {
            files: tighter(self.files, other.files),
            code: tighter(self.code, other.code),
            network: tighter(self.network, other.network),
            git: tighter(self.git, other.git),
            terminal: tighter(self.terminal, other.terminal),
            commands: joined(&self.commands, &other.commands, |one, two| one & two),
            requires_approval: joined(
                &self.requires_approval,
                &other.requires_approval,
                |one, two| one | two,
            ),
        }
    }
}

/// The smaller of two, absent ones left out.
pub(crate) fn tighter<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

fn joined<T: Clone + Ord>(
    one: &Option<BTreeSet<T>>,
    two: &Option<BTreeSet<T>>,
    join: fn(&BTreeSet<T>, &BTreeSet<T>) -> BTreeSet<T>,
) -> Option<BTreeSet<T>> {
    match (one, two) {
        (Some(one), Some(two)) => Some(join(one, two)),
        (one, two) => one.clone().or_else(|| two.clone()),
    }
}
