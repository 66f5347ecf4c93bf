//! One tool of the registry: its document, what holds for it, and what runs.

use std::borrow::Cow;
use std::sync::Arc;

use model::config::{JailConfig, ServerTransport};
use model::document::Document;
use model::document::environment::Environment;
use model::document::finding::Finding;
use model::document::lifecycle::{self, LifecycleState};
use model::document::params::{self, Arguments};
use model::document::safety::Source;
use model::govern::action::Action;
use model::govern::consent::Granted;
use model::policy::EffectivePolicy;
use model::policy::assessment::UsableDocument;
use serde_json::{Map, Value};

use crate::native::{Native, refuse_arguments};
use crate::refusal::CallRefusal;
use crate::server_tool::ServerTool;
use crate::toolbox::{JailStanding, ToolboxTool};

/// One tool that can be used, published or not.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The document and what holds for it.
    pub usable: Arc<UsableDocument>,
    /// Where it comes from.
    pub source: Source,
    /// What runs.
    pub body: ToolBody,
    /// Its file in the tools folder, without the ending; bundled tools have none.
    pub file: Option<String>,
    /// What was seen in it that is no error.
    pub findings: Vec<Finding>,
    /// Where it stands but for its variables.
    pub state: ToolState,
    /// What its owner granted to it.
    pub granted: Granted,
}

/// What runs when a tool is called. `body::run` is the one place that chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolBody {
    /// The document's own code, in the sandbox.
    Code,
    /// A built-in tool of code mode or progressive listing: the engine itself does its work.
    Native(Native),
    /// A tool of an MCP server, made by `servers`.
    Server(Arc<ServerTool>),
    /// A toolbox tool: commands, git, databases, requests. What it starts runs in a jail.
    Toolbox(ToolboxTool),
}

impl ToolBody {
    /// The built-in tool, if it is one.
    #[must_use]
    pub fn native(&self) -> Option<Native> {
        match self {
            ToolBody::Code | ToolBody::Server(_) | ToolBody::Toolbox(_) => None,
            ToolBody::Native(native) => Some(*native),
        }
    }

    /// The tool of a server, if it is one.
    #[must_use]
    pub fn server(&self) -> Option<&ServerTool> {
        match self {
            ToolBody::Code | ToolBody::Native(_) | ToolBody::Toolbox(_) => None,
            ToolBody::Server(tool) => Some(tool),
        }
    }

    /// The toolbox tool, if it is one.
    #[must_use]
    pub fn toolbox(&self) -> Option<ToolboxTool> {
        match self {
            ToolBody::Code | ToolBody::Native(_) | ToolBody::Server(_) => None,
            ToolBody::Toolbox(tool) => Some(*tool),
        }
    }

    /// What a call does, where the body derives it from the arguments.
    pub(crate) fn stated_actions(
        &self,
        arguments: &Map<String, Value>,
        policy: &EffectivePolicy,
    ) -> Option<Vec<Action>> {
        self.toolbox().map(|tool| tool.actions(arguments, policy))
    }

    /// Whether it runs in the sandbox, or in a jail that the operator counts as whole.
    pub(crate) fn is_contained(&self, jail: JailConfig) -> bool {
        match self {
            ToolBody::Code | ToolBody::Native(_) => true,
            ToolBody::Toolbox(_) => JailStanding::of_machine().is_contained(jail),
            ToolBody::Server(tool) => match &tool.server.transport {
                ServerTransport::Command(_) => JailStanding::of_machine().is_contained(jail),
                // It runs on another machine, or for another user of this one.
                ServerTransport::Url(_) => true,
            },
        }
    }

    /// The arguments as clients see them, as a JSON Schema.
    #[must_use]
    pub fn input_schema(&self, document: &Document) -> Value {
        match self {
            ToolBody::Code => params::shown_schema(&document.params),
            ToolBody::Native(native) => native.input_schema(),
            ToolBody::Server(tool) => tool.definition.input_schema.clone(),
            ToolBody::Toolbox(tool) => tool.input_schema(),
        }
    }

    /// What comes back, where it always has the same shape.
    #[must_use]
    pub fn output_schema(&self) -> Option<Value> {
        match self {
            ToolBody::Code => None,
            ToolBody::Native(native) => native.output_schema(),
            ToolBody::Server(tool) => tool.definition.output_schema.clone(),
            ToolBody::Toolbox(tool) => tool.output_schema(),
        }
    }

    /// The arguments of a call, checked, under the names used here, so that rules,
    /// questions and the record see one spelling.
    pub(crate) fn check_arguments(
        &self,
        document: &Document,
        arguments: &Value,
    ) -> Result<Arguments, CallRefusal> {
        let given = match self {
            ToolBody::Code | ToolBody::Server(_) => Cow::Borrowed(arguments),
            ToolBody::Native(native) => native.spell(arguments)?,
            ToolBody::Toolbox(tool) => return tool.check_arguments(arguments),
        };
        let checked = match self {
            ToolBody::Code | ToolBody::Native(_) | ToolBody::Toolbox(_) => {
                params::check(&document.params, &given)
            }
            ToolBody::Server(tool) => {
                params::check_schema(&given, |given| tool.schemas.check_arguments(given))
            }
        };
        checked.map_err(refuse_arguments)
    }
}

/// The state of a tool, variables aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// It has not earned its Local Pass, or was edited since, or its author
    /// marks it as a draft.
    Draft,
    /// Its last Local Pass failed, with this.
    TestFailed(String),
    /// It passed and was published.
    Published,
}

/// A file that cannot be used.
#[derive(Clone, Debug)]
pub struct SetAside {
    /// Its name in the tools folder.
    pub file: String,
    /// The tool it wants to be, if it says so.
    pub name: Option<String>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

impl Tool {
    /// Why it cannot be called yet; nothing if it is published.
    #[must_use]
    pub fn not_published(&self) -> Option<String> {
        match &self.state {
            ToolState::Published => None,
            ToolState::Draft => Some("is a draft".to_owned()),
            ToolState::TestFailed(why) => Some(format!("failed its own test ({why})")),
        }
    }

    /// Where it stands, and the variables it needs that are not set.
    #[must_use]
    pub fn lifecycle(&self, environment: &Environment) -> (LifecycleState, Vec<String>) {
        let missing = lifecycle::missing(&self.usable.document, environment);
        let state = match &self.state {
            ToolState::Draft => LifecycleState::Draft,
            ToolState::TestFailed(_) => LifecycleState::TestFailed,
            ToolState::Published if missing.is_empty() && self.ungranted().is_empty() => {
                LifecycleState::Active
            }
            ToolState::Published => LifecycleState::MissingRequirements,
        };
        (state, missing)
    }

    /// The variables it names that its owner has not granted to it.
    #[must_use]
    pub fn ungranted(&self) -> Vec<String> {
        self.granted.ungranted(&self.usable.document)
    }
}
