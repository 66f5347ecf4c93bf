//! Everything a call depends on, at one moment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::config::Config;
use model::document::Document;
use model::document::finding::{Finding, any_error};
use model::document::safety::Source;
use model::govern::access::EarnedLevels;
use model::govern::consent::Granted;
use model::govern::exposure::{ExposureInput, ExposureVerdict};
use model::nearest::nearest;
use model::policy::Baseline;
use store::ToolGrants;

use crate::catalog::{Bundled, Catalog, Natives, Toolbox};
use crate::native::Native;
use crate::servers::ServerTools;
use crate::settings::Settings;
use crate::tool::{SetAside, Tool, ToolBody};
use crate::toolbox::ToolboxTool;

/// Everything a call depends on, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Tells it from every other one of this process.
    pub(crate) serial: u64,
    /// The operator's settings, with the rules of all files.
    pub config: Config,
    /// The texts they come from.
    pub settings: Arc<Settings>,
    /// What would hold if the candidate beside the live rules were in force.
    pub shadow: Option<Arc<ShadowSnapshot>>,
    /// What every tool stands on.
    pub baseline: Baseline,
    pub(crate) own: BTreeMap<String, Tool>,
    pub(crate) bundled: Bundled,
    pub(crate) natives: Natives,
    pub(crate) toolbox: Toolbox,
    pub(crate) servers: Arc<ServerTools>,
    pub(crate) grants: Arc<ToolGrants>,
    /// Files that cannot be used, and why.
    pub set_aside: Vec<SetAside>,
    pub(crate) preset: Vec<String>,
    /// Why nothing runs, while the audit does not say which settings are in force.
    pub(crate) owed: Option<String>,
    /// Why there are no tools and no grants, while they cannot be read.
    pub(crate) unread: Option<String>,
}

/// A candidate beside the live settings: it is evaluated and never enforced.
#[derive(Debug)]
pub struct ShadowSnapshot {
    /// The file of the candidate, as the settings name it.
    pub file: String,
    /// Everything as it would be.
    pub snapshot: Snapshot,
}

impl Snapshot {
    /// A tool by its name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        // The order decides nothing: `registry::build` sets aside what claims a name that
        // is taken.
        let own = self.own.get(name);
        own.or_else(|| self.bundled.get(name))
            .or_else(|| self.natives.get(name))
            .or_else(|| self.toolbox.get(name))
            .or_else(|| self.servers.get(name))
    }

    /// Some tool, if there is any.
    pub(crate) fn any_tool(&self) -> Option<&Tool> {
        let shipped = self.bundled.all().next();
        shipped.or_else(|| self.own.values().next())
    }

    /// Every tool, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        let shipped = self.bundled.all().chain(self.natives.all());
        let shipped = shipped.chain(self.toolbox.all());
        let served = self.servers.all();
        let mut tools: Vec<_> = self.own.values().chain(shipped).chain(served).collect();
        tools.sort_by(|a, b| a.usable.document.name.cmp(&b.usable.document.name));
        tools.into_iter()
    }

    /// The name of every tool, by name where it is one's own.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.own.keys().map(String::as_str);
        let toolbox = self.toolbox.all().iter().map(name_of);
        own.chain(self.bundled.names())
            .chain(toolbox)
            .chain(self.servers.names())
    }

    /// The tools scripts may call as `space.method(args)`: how, and by which name.
    pub(crate) fn script_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.own.keys().map(String::as_str);
        let dotted = own.chain(self.bundled.names());
        let dotted = dotted.filter(|name| name.contains('.'));
        // A document's own name comes first: it was there when the server came.
        dotted
            .map(|name| (name, name))
            .chain(self.servers.script_names())
    }

    /// The tool a script means by a name.
    pub(crate) fn script_target(&self, name: &str) -> Option<&str> {
        let mut names = self.script_names();
        let found = names.find(|(script_name, _)| *script_name == name);
        found.map(|(_, target)| target)
    }

    /// The MCP servers of the settings.
    #[must_use]
    pub fn servers(&self) -> &ServerTools {
        &self.servers
    }

    /// Whether a call may come to a question of a server. Our own tools call others.
    #[must_use]
    pub fn may_elicit(&self, name: &str) -> bool {
        match self.tool(name).map(|tool| &tool.body) {
            Some(ToolBody::Server(tool)) => tool.server.elicitation,
            Some(ToolBody::Native(_)) => {
                let mut servers = self.servers.servers().values();
                servers.any(|view| view.config.elicitation)
            }
            Some(ToolBody::Code | ToolBody::Toolbox(_)) | None => false,
        }
    }

    /// Why there is no tool of a name, for the operator.
    #[must_use]
    pub(crate) fn why_not(&self, name: &str) -> String {
        if let Some(why) = &self.unread {
            return format!("the tools cannot be read: {why}");
        }
        let mut aside = self.set_aside.iter();
        match aside.find(|aside| aside.name.as_deref() == Some(name)) {
            Some(aside) => {
                let first = aside.findings.iter().find(|finding| is_error(finding));
                let why = first.map_or("it cannot be used", |finding| finding.message.as_str());
                format!("`{}` is set aside: {why}", aside.file)
            }
            None => match Native::named(name).map(Native::feature) {
                Some(part) => format!("{} is off (`{}`)", part.words(), part.setting()),
                None if ToolboxTool::named(name).is_some() => {
                    "its category is not enabled (`toolbox.enabled`)".to_owned()
                }
                None => match self.servers.server_of(name) {
                    Some(server) => {
                        format!("it is not accepted; `ringfence servers review {server}` shows why")
                    }
                    None => "no document has that name".to_owned(),
                },
            },
        }
    }

    /// The tool that may have been meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(
            name,
            self.own
                .keys()
                .map(String::as_str)
                .chain(self.bundled.names())
                .chain(self.natives.all().iter().map(name_of))
                .chain(self.toolbox.all().iter().map(name_of))
                .chain(self.servers.all().map(name_of)),
        )
    }

    /// Whether a tool is exposed, and why.
    #[must_use]
    pub fn exposed(&self, document: &Document, source: Source) -> ExposureVerdict {
        let offered = ExposureInput {
            name: &document.name,
            tags: &document.tags,
            category: document.category.as_deref(),
            bundled: source == Source::Builtin,
            in_preset: source == Source::Builtin && self.preset.contains(&document.name),
            part: (source == Source::Builtin)
                .then(|| part_of(&document.name))
                .flatten(),
        };
        self.config.exposure.of(&offered)
    }

    /// What the owner granted to the tool of a name, or to a document of that name in
    /// a file.
    pub(crate) fn granted(&self, name: &str, place: Option<&Path>) -> Granted {
        Granted::Only(self.grants.of(name, &place_word(place)))
    }

    /// The tool of ours that a document is, word for word, its test values included:
    /// they decide what a Local Pass does.
    pub(crate) fn ours(&self, document: &Document) -> Option<&Tool> {
        let tool = self.tool(&document.name)?;
        let is_ours = tool.source == Source::Builtin && tool.usable.document == *document;
        is_ours.then_some(tool)
    }
}

/// A file as the store keeps it; empty for the tools folder.
pub(crate) fn place_word(place: Option<&Path>) -> String {
    place
        .map(|path| path.display().to_string())
        .unwrap_or_default()
}

/// The part of ours that a tool of this name belongs to.
fn part_of(name: &str) -> Option<&'static str> {
    let native = Native::named(name).map(|native| native.feature().words());
    native.or_else(|| ToolboxTool::named(name).map(|_| "the toolbox"))
}

fn name_of(tool: &Tool) -> &str {
    &tool.usable.document.name
}

fn is_error(finding: &Finding) -> bool {
    any_error(std::slice::from_ref(finding))
}

impl Snapshot {
    /// What is left when the tools cannot be read: none, for an old list may
    /// offer what was taken away. The settings stay: without them, what they deny
    /// would not be denied to what comes without the registry.
    pub(crate) fn without_tools(&self, why: String) -> Snapshot {
        Snapshot {
            serial: next_serial(),
            config: self.config.clone(),
            settings: Arc::clone(&self.settings),
            shadow: None,
            baseline: self.baseline.clone(),
            own: BTreeMap::new(),
            bundled: Bundled::new(&Arc::new(Catalog::empty()), &self.baseline),
            natives: Natives::none(&self.baseline),
            toolbox: Toolbox::none(&self.baseline),
            servers: Arc::default(),
            grants: Arc::default(),
            set_aside: Vec::new(),
            preset: Vec::new(),
            owed: self.owed.clone(),
            unread: Some(why),
        }
    }

    /// What is left while the settings are not in the audit: nothing, not even for
    /// what the owner brings.
    pub(crate) fn unsettled(&self, why: String) -> Snapshot {
        Snapshot {
            owed: Some(why.clone()),
            ..self.without_tools(why)
        }
    }

    /// The same where a caller has earned something else.
    pub(crate) fn with_earned(&self, name: String, earned: EarnedLevels) -> Snapshot {
        let mut other = self.clone();
        other.serial = next_serial();
        other.config.access.earned.insert(name, earned);
        other
    }
}

pub(crate) fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: numbers must differ, and need no order.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
