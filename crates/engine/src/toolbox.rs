//! The native tools: commands, code, repositories, databases, requests. Each is a document
//! like any other, so that lists, levels, rules, approvals and the audit hold for it; what
//! runs is ours. Here is what they are: their names, what they reach, and what one call of
//! them does. `bodies` has what they run.
//!
//! A tool exists only if `[toolbox]` enables its category. Its risk follows from what it
//! reaches, by the same rules as the risk of every document.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use model::config::{ConnectionKind, JailConfig, ToolboxCategory};
use model::document::params::{self, Arguments};
use model::govern::action::Action;
use model::govern::approval::COPIES_CHANGES;
use model::policy::EffectivePolicy;
use model::policy::risk::{Level, Risk, Signal};
use serde_json::{Map, Value};

use crate::native::refuse_arguments;
use crate::refusal::CallRefusal;
use crate::server_tool::ServerSchemas;

mod action;
mod definition;
mod remedy;
mod standing;

/// Where programs are looked for. Fixed: a caller's command means the same everywhere.
pub(crate) const PROGRAM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) use action::only_asks;
pub(crate) use definition::document_text;
pub use remedy::child_fix;
pub use standing::JailStanding;
pub(crate) use standing::required_rung;

/// A native tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolboxTool {
    /// Runs a command.
    Shell,
    /// Starts a command in the background.
    JobStart,
    /// Tells how a job goes.
    JobStatus,
    /// Reads what a job wrote.
    JobOutput,
    /// Ends a job.
    JobCancel,
    /// Lists the caller's jobs.
    JobList,
    /// Runs a program given as text.
    RunCode,
    /// What changed in a repository.
    GitStatus,
    /// Its commits.
    GitLog,
    /// The difference between two of its states.
    GitDiff,
    /// One of its objects.
    GitShow,
    /// Its branches.
    GitBranch,
    /// Marks changes for the next commit.
    GitAdd,
    /// Makes a commit.
    GitCommit,
    /// Copies a repository from a host.
    GitClone,
    /// Brings what is new from its host.
    GitFetch,
    /// Sends commits to its host.
    GitPush,
    /// Copies the changes of an earlier call into the operator's folder.
    ApplyChanges,
    /// Asks a database.
    SqlQuery,
    /// Tells what tables a database has.
    SqlSchema,
    /// Changes a database.
    SqlExecute,
    /// Makes a request.
    HttpRequest,
    /// Reads a page.
    ReadPage,
}

/// What a tool reaches, whatever its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolboxReach {
    /// It reads the folder it works in.
    pub(crate) read: bool,
    /// It changes the folder it works in.
    pub(crate) write: FolderChanges,
    /// It reaches the hosts of `[toolbox]`.
    pub(crate) network: bool,
    /// It runs programs of the caller's choice.
    pub(crate) programs: bool,
}

/// How a tool changes the folder it works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderChanges {
    /// Not at all.
    None,
    /// In the workspace at once. Changes of an operator's folder are kept aside, and
    /// `applyChanges` brings them there.
    Aside,
    /// At once, wherever it works.
    Direct,
}

impl ToolboxTool {
    /// All of them.
    pub const ALL: [ToolboxTool; 23] = [
        ToolboxTool::Shell,
        ToolboxTool::JobStart,
        ToolboxTool::JobStatus,
        ToolboxTool::JobOutput,
        ToolboxTool::JobCancel,
        ToolboxTool::JobList,
        ToolboxTool::RunCode,
        ToolboxTool::GitStatus,
        ToolboxTool::GitLog,
        ToolboxTool::GitDiff,
        ToolboxTool::GitShow,
        ToolboxTool::GitBranch,
        ToolboxTool::GitAdd,
        ToolboxTool::GitCommit,
        ToolboxTool::GitClone,
        ToolboxTool::GitFetch,
        ToolboxTool::GitPush,
        ToolboxTool::ApplyChanges,
        ToolboxTool::SqlQuery,
        ToolboxTool::SqlSchema,
        ToolboxTool::SqlExecute,
        ToolboxTool::HttpRequest,
        ToolboxTool::ReadPage,
    ];

    /// The name in lists and calls.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ToolboxTool::Shell => "shell",
            ToolboxTool::JobStart => "jobStart",
            ToolboxTool::JobStatus => "jobStatus",
            ToolboxTool::JobOutput => "jobOutput",
            ToolboxTool::JobCancel => "jobCancel",
            ToolboxTool::JobList => "jobList",
            ToolboxTool::RunCode => "runCode",
            ToolboxTool::GitStatus => "gitStatus",
            ToolboxTool::GitLog => "gitLog",
            ToolboxTool::GitDiff => "gitDiff",
            ToolboxTool::GitShow => "gitShow",
            ToolboxTool::GitBranch => "gitBranch",
            ToolboxTool::GitAdd => "gitAdd",
            ToolboxTool::GitCommit => "gitCommit",
            ToolboxTool::GitClone => "gitClone",
            ToolboxTool::GitFetch => "gitFetch",
            ToolboxTool::GitPush => "gitPush",
            ToolboxTool::ApplyChanges => COPIES_CHANGES,
            ToolboxTool::SqlQuery => "sqlQuery",
            ToolboxTool::SqlSchema => "sqlSchema",
            ToolboxTool::SqlExecute => "sqlExecute",
            ToolboxTool::HttpRequest => "httpRequest",
            ToolboxTool::ReadPage => "readPage",
        }
    }

    /// The one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<ToolboxTool> {
        let mut all = ToolboxTool::ALL.into_iter();
        all.find(|tool| tool.name() == name)
    }

    /// The categories of which one must be enabled.
    pub(crate) fn categories(self) -> &'static [ToolboxCategory] {
        match self {
            ToolboxTool::Shell
            | ToolboxTool::JobStart
            | ToolboxTool::JobStatus
            | ToolboxTool::JobOutput
            | ToolboxTool::JobCancel
            | ToolboxTool::JobList => &[ToolboxCategory::Terminal],
            ToolboxTool::RunCode => &[ToolboxCategory::Code],
            ToolboxTool::GitStatus
            | ToolboxTool::GitLog
            | ToolboxTool::GitDiff
            | ToolboxTool::GitShow
            | ToolboxTool::GitBranch
            | ToolboxTool::GitAdd
            | ToolboxTool::GitCommit
            | ToolboxTool::GitClone
            | ToolboxTool::GitFetch
            | ToolboxTool::GitPush => &[ToolboxCategory::Git],
            ToolboxTool::ApplyChanges => &[ToolboxCategory::Terminal, ToolboxCategory::Code],
            ToolboxTool::SqlQuery | ToolboxTool::SqlSchema | ToolboxTool::SqlExecute => {
                &[ToolboxCategory::Sql]
            }
            ToolboxTool::HttpRequest | ToolboxTool::ReadPage => &[ToolboxCategory::Http],
        }
    }

    /// What it reaches, whatever its arguments.
    pub(crate) fn reach(self) -> ToolboxReach {
        let nothing = ToolboxReach {
            read: false,
            write: FolderChanges::None,
            network: false,
            programs: false,
        };
        match self {
            ToolboxTool::Shell | ToolboxTool::JobStart | ToolboxTool::RunCode => ToolboxReach {
                read: true,
                write: FolderChanges::Aside,
                network: true,
                programs: true,
            },
            ToolboxTool::JobStatus
            | ToolboxTool::JobOutput
            | ToolboxTool::JobCancel
            | ToolboxTool::JobList => nothing,
            ToolboxTool::GitStatus
            | ToolboxTool::GitLog
            | ToolboxTool::GitDiff
            | ToolboxTool::GitShow => ToolboxReach {
                read: true,
                ..nothing
            },
            ToolboxTool::GitBranch
            | ToolboxTool::GitAdd
            | ToolboxTool::GitCommit
            | ToolboxTool::ApplyChanges => ToolboxReach {
                read: true,
                write: FolderChanges::Direct,
                ..nothing
            },
            ToolboxTool::GitClone | ToolboxTool::GitFetch | ToolboxTool::GitPush => ToolboxReach {
                read: true,
                write: FolderChanges::Direct,
                network: true,
                programs: false,
            },
            ToolboxTool::SqlQuery | ToolboxTool::SqlSchema => ToolboxReach {
                read: true,
                ..nothing
            },
            ToolboxTool::SqlExecute => ToolboxReach {
                read: true,
                write: FolderChanges::Direct,
                ..nothing
            },
            ToolboxTool::HttpRequest | ToolboxTool::ReadPage => ToolboxReach {
                network: true,
                ..nothing
            },
        }
    }

    /// What a call is given, in a word for its record.
    pub(crate) fn powers(self) -> &'static str {
        match self.reach().read {
            true => "a jail",
            // Only tools with a folder start a process.
            false => "no program",
        }
    }

    /// The kind of connection a call may name, if it may.
    pub(crate) fn connections(self) -> Option<ConnectionKind> {
        match self {
            ToolboxTool::SqlQuery | ToolboxTool::SqlSchema | ToolboxTool::SqlExecute => {
                Some(ConnectionKind::Postgres)
            }
            ToolboxTool::HttpRequest => Some(ConnectionKind::Http),
            ToolboxTool::Shell
            | ToolboxTool::JobStart
            | ToolboxTool::JobStatus
            | ToolboxTool::JobOutput
            | ToolboxTool::JobCancel
            | ToolboxTool::JobList
            | ToolboxTool::RunCode
            | ToolboxTool::GitStatus
            | ToolboxTool::GitLog
            | ToolboxTool::GitDiff
            | ToolboxTool::GitShow
            | ToolboxTool::GitBranch
            | ToolboxTool::GitAdd
            | ToolboxTool::GitCommit
            | ToolboxTool::GitClone
            | ToolboxTool::GitFetch
            | ToolboxTool::GitPush
            | ToolboxTool::ApplyChanges
            | ToolboxTool::ReadPage => None,
        }
    }

    /// The kind of connection whose credentials a call may use, and must mask. The hosts of
    /// git come from the settings of the toolbox, not from its connections.
    pub(crate) fn credentials(self) -> Option<ConnectionKind> {
        match self {
            ToolboxTool::GitClone | ToolboxTool::GitFetch | ToolboxTool::GitPush => {
                Some(ConnectionKind::Git)
            }
            other => other.connections(),
        }
    }

    /// Adds to the risk of its policy: the programs it runs, and what their fence lacks.
    pub(crate) fn raise(self, standing: &JailStanding, settings: JailConfig, risk: &mut Risk) {
        let reach = self.reach();
        if reach.programs {
            let level = Level::L3;
            risk.level = risk.level.max(level);
            risk.signals.push(Signal {
                level,
                words: "programs: runs whatever its arguments say, in a jail".to_owned(),
            });
        }
        // Only tools with a folder start a process, so only these need the fence.
        if reach.read {
            standing.raise(settings, risk);
        }
        risk.signals
            .sort_by_key(|signal| std::cmp::Reverse(signal.level));
    }

    /// What one call does, by its arguments and what it is held to.
    pub(crate) fn actions(
        self,
        arguments: &Map<String, Value>,
        policy: &EffectivePolicy,
    ) -> Vec<Action> {
        let words = action::words(self, arguments, policy);
        words.into_iter().filter_map(Action::built_in).collect()
    }

    /// Whether a call with these actions changes nothing, though others of the tool may: a
    /// request that only asks needs no yes, as `readPage` needs none.
    pub(crate) fn only_reads(self, actions: &[Action]) -> bool {
        let question = Action::built_in("external_data:request");
        self == ToolboxTool::HttpRequest && question.is_some_and(|one| actions == [one])
    }

    /// Its arguments as clients see them, as a JSON Schema.
    #[must_use]
    pub fn input_schema(self) -> Value {
        definition::read(self).input_schema
    }

    /// What comes back.
    #[must_use]
    pub fn output_schema(self) -> Option<Value> {
        definition::read(self).output_schema
    }

    /// The arguments of a call, checked against the whole schema.
    pub(crate) fn check_arguments(self, arguments: &Value) -> Result<Arguments, CallRefusal> {
        static SCHEMAS: OnceLock<BTreeMap<ToolboxTool, ServerSchemas>> = OnceLock::new();
        let all = SCHEMAS.get_or_init(|| {
            let schemas = |tool: ToolboxTool| {
                let definition = definition::read(tool);
                let output = definition.output_schema.as_ref();
                (tool, ServerSchemas::of(&definition.input_schema, output))
            };
            ToolboxTool::ALL.into_iter().map(schemas).collect()
        });
        let schemas = all.get(&self);
        let checked = params::check_schema(arguments, |given| match schemas {
            Some(schemas) => schemas.check_arguments(given),
            None => Err(Vec::new()),
        });
        checked.map_err(refuse_arguments)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::document::Overrides;
    use model::policy::Baseline;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_tool_has_a_name_of_its_own_and_a_schema_that_closes() {
        let names: BTreeSet<_> = ToolboxTool::ALL.iter().map(|tool| tool.name()).collect();
        assert_eq!(names.len(), ToolboxTool::ALL.len());
        for tool in ToolboxTool::ALL {
            assert_eq!(ToolboxTool::named(tool.name()), Some(tool));
            let definition = definition::read(tool);
            assert_eq!(definition.fields.get("name"), Some(&json!(tool.name())));
            assert_eq!(definition.input_schema["type"], "object", "{tool:?}");
            assert_eq!(
                definition.input_schema["additionalProperties"],
                json!(false),
                "{tool:?}"
            );
            assert!(
                tool.check_arguments(&json!({"notAnArgument": 1})).is_err(),
                "{tool:?}"
            );
        }
    }

    /// What changes a file, a database or something elsewhere, or runs a program, asks from the
    /// risk on that the operator chose. What only looks does not.
    #[test]
    fn what_changes_something_asks_from_a_risk_on() {
        let asks: BTreeSet<_> = [
            ToolboxTool::Shell,
            ToolboxTool::JobStart,
            ToolboxTool::RunCode,
            ToolboxTool::GitBranch,
            ToolboxTool::GitAdd,
            ToolboxTool::GitCommit,
            ToolboxTool::GitClone,
            ToolboxTool::GitFetch,
            ToolboxTool::GitPush,
            ToolboxTool::ApplyChanges,
            ToolboxTool::SqlExecute,
            ToolboxTool::HttpRequest,
        ]
        .into();
        for tool in ToolboxTool::ALL {
            let fields = definition::read(tool).fields;
            let mode = fields.get("humanInTheLoop").and_then(|one| one.get("mode"));
            let expected = asks.contains(&tool).then(|| json!("AUTO_APPROVE"));
            assert_eq!(mode, expected.as_ref(), "{tool:?}");
            let reach = tool.reach();
            let changes = reach.write != FolderChanges::None || reach.programs;
            assert!(!changes || asks.contains(&tool), "{tool:?}");
        }
    }

    #[test]
    fn no_call_states_nothing() {
        let policy =
            model::policy::resolve(&Baseline::closed(), &Overrides::default()).expect("a policy");
        for tool in ToolboxTool::ALL {
            let actions = tool.actions(&Map::new(), &policy);
            assert!(!actions.is_empty(), "{tool:?}");
        }
    }
}
