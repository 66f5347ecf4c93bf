//! `toolSafety`: the auditable record of the policy of a call.
//!
//! Written from the effective policy of each call, by the module of that name in
//! `policy`. The block in a document is validated and compared, never used.

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::NetworkMode;
use crate::document::finding::{Code, Finding};
use crate::document::json::Node;
use crate::limits;
use crate::word::Word;

/// The specification version we write.
pub const VERSION: &str = "1.0";
/// Our runtime's name in the record.
pub const RUNTIME_ID: &str = "ringfence/quickjs";
/// What the record says instead where programs run in the jail.
const JAIL_ID: &str = "ringfence/jail";

/// The auditable record of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Safety {
    /// The specification version it was written against.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub version: Option<String>,
    /// What runs the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Where the tool comes from and what it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// What the code can reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The fence around the programs that a call starts; absent if it starts none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jail: Option<JailRecord>,
}

impl Safety {
    /// The record of a tool whose programs run in the jail and not in the sandbox.
    #[must_use]
    pub fn in_jail(mut self, jail: &JailRecord) -> Safety {
        self.runtime = Some(Runtime {
            id: Some(JAIL_ID.to_owned()),
            min_version: self.runtime.and_then(|runtime| runtime.min_version),
            ..Runtime::default()
        });
        self.jail = Some(jail.clone());
        self
    }
}

/// The fence around programs, as the machine was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JailRecord {
    /// How much of it there is: `namespaces`, `landlock` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub rung: Option<String>,
    /// The layers that are up.
    #[schemars(with = "Option<Vec<crate::document::schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub up: Vec<String>,
    /// The layers that are missing, each with why.
    #[schemars(with = "Option<Vec<crate::document::schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub missing: Vec<String>,
}

/// What runs the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Runtime {
    /// The runtime's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub id: Option<String>,
    /// The oldest version of it that will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub min_version: Option<String>,
    /// The edition of ECMAScript.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub ecma_version: Option<String>,
    /// Whether code reaches host classes. Never, here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub java_interop: Option<bool>,
    /// The helper groups, such as `safety.fs/v1`.
    #[schemars(with = "Option<Vec<Helper>>", length(max = limits::LIST_ITEMS_MAX))]
    pub helpers: Vec<String>,
    /// Whether `console` exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console: Option<bool>,
}

/// Where the tool comes from and what it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Category {
    /// `builtin` for bundled tools, `user` for one's own, or another origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub source: Option<String>,
    /// The category of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub id: Option<String>,
}

/// What the code can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capabilities {
    /// What `fetch` may reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Whether files can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_read: Option<bool>,
    /// Whether files can be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_write: Option<bool>,
    /// Whether a call destroys what cannot be had back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
}

/// What `fetch` may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// The mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<NetworkMode>,
    /// The hosts of mode `allowlist`.
    #[schemars(with = "Option<Vec<crate::document::schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub hosts: Vec<String>,
}

/// A helper group such as `safety.fs/v1`; its schema only.
struct Helper;

const HELPER_PATTERN: &str = "^[a-z][a-z0-9.-]*/v[0-9]+(#[a-z0-9-]+)?$";

impl JsonSchema for Helper {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Helper".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "maxLength": limits::WORD_CHARS_MAX, "pattern": HELPER_PATTERN
        })
    }
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Shipped with Ringfence.
    Builtin,
    /// Written or imported by the owner.
    User,
    /// Offered by an MCP server.
    Server,
}

const KNOWN: &[&str] = &[
    "safety.http/v1",
    "safety.fs/v1",
    "safety.parser/v1",
    "tool-safety-helpers/v1#parser",
    "tool-safety-helpers/v1#crypto",
    "tool-safety-helpers/v1#encoding",
];

/// Findings where the document's block claims less than its policy.
#[must_use]
pub fn compare(stored: &Safety, resolved: &Safety) -> Vec<Finding> {
    let (Some(stored), Some(resolved)) = (&stored.capabilities, &resolved.capabilities) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut say = |pointer: &str, claimed: String, held: String| {
        let message = format!("the stored block says {claimed}, the policy in force says {held}");
        let pointer = format!("toolSafety.capabilities.{pointer}");
        let fix = "nothing to do: the stored block is never used, and publishing rewrites it";
        findings.push(Finding::warning(Code::SpecInvariant, pointer, message).fix(fix));
    };
    let mode = |capabilities: &Capabilities| {
        capabilities
            .network
            .as_ref()
            .and_then(|network| network.mode)
    };
    if let (Some(claimed), Some(held)) = (mode(stored), mode(resolved))
        && claimed != held
    {
        say(
            "network.mode",
            format!("`{}`", claimed.word()),
            format!("`{}`", held.word()),
        );
    }
    for (pointer, claimed, held) in [
        ("fileRead", stored.file_read, resolved.file_read),
        ("fileWrite", stored.file_write, resolved.file_write),
    ] {
        if let (Some(claimed), Some(held)) = (claimed, held)
            && claimed != held
        {
            say(pointer, claimed.to_string(), held.to_string());
        }
    }
    findings
}

/// Findings about requirements of a stored block that this runtime does not meet.
pub(crate) fn unprovided(stored: &Safety) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(version) = &stored.version
        && version.split('.').next() != Some("1")
    {
        let message = format!(
            "the document was written against version {} of the specification",
            crate::text::elided(version, 20)
        );
        let finding = Finding::error(Code::SpecInvariant, "toolSafety.version", message);
        findings.push(finding.fix("this runtime reads versions 1.x"));
    }
    let helpers = stored
        .runtime
        .iter()
        .flat_map(|runtime| runtime.helpers.iter().enumerate());
    for (index, helper) in helpers {
        if !KNOWN.contains(&helper.as_str()) {
            let pointer = format!("toolSafety.runtime.helpers[{index}]");
            let message = format!("this runtime does not provide the helper `{helper}`");
            findings.push(Finding::warning(Code::SpecInvariant, pointer, message));
        }
    }
    findings
}

/// Reads the block a document carries.
pub(crate) fn read(
    reader: &mut crate::document::Reader<'_>,
    node: &Node,
    at: &str,
) -> Option<Safety> {
    use crate::document::{join, present};
    reader.require_known_keys(
        node,
        at,
        &["version", "runtime", "category", "capabilities", "jail"],
    )?;
    let word = limits::WORD_CHARS_MAX;
    let mut safety = Safety {
        version: reader.string(node, at, "version", word),
        ..Safety::default()
    };
    if let Some(node) = present(node, "runtime") {
        let at = join(at, "runtime");
        let keys = &[
            "id",
            "minVersion",
            "ecmaVersion",
            "javaInterop",
            "helpers",
            "console",
        ];
        reader.require_known_keys(node, &at, keys)?;
        safety.runtime = Some(Runtime {
            id: reader.string(node, &at, "id", word),
            min_version: reader.string(node, &at, "minVersion", word),
            ecma_version: reader.string(node, &at, "ecmaVersion", word),
            java_interop: reader.boolean(node, &at, "javaInterop"),
            helpers: read_helpers(reader, node, &at),
            console: reader.boolean(node, &at, "console"),
        });
    }
    if let Some(node) = present(node, "category") {
        let at = join(at, "category");
        reader.require_known_keys(node, &at, &["source", "id"])?;
        let source = reader.string(node, &at, "source", word);
        safety.category = Some(Category {
            source,
            id: reader.string(node, &at, "id", word),
        });
    }
    if let Some(node) = present(node, "capabilities") {
        let at = join(at, "capabilities");
        reader.require_known_keys(
            node,
            &at,
            &["network", "fileRead", "fileWrite", "destructive"],
        )?;
        safety.capabilities = Some(Capabilities {
            network: read_network(reader, node, &at),
            file_read: reader.boolean(node, &at, "fileRead"),
            file_write: reader.boolean(node, &at, "fileWrite"),
            destructive: reader.boolean(node, &at, "destructive"),
        });
    }
    if let Some(node) = present(node, "jail") {
        let at = join(at, "jail");
        reader.require_known_keys(node, &at, &["rung", "up", "missing"])?;
        safety.jail = Some(JailRecord {
            rung: reader.string(node, &at, "rung", word),
            up: reader.strings(node, &at, "up", limits::LIST_ITEMS_MAX),
            missing: reader.strings(node, &at, "missing", limits::LIST_ITEMS_MAX),
        });
    }
    Some(safety)
}

fn read_network(
    reader: &mut crate::document::Reader<'_>,
    node: &Node,
    at: &str,
) -> Option<Network> {
    let node = crate::document::present(node, "network")?;
    let at = crate::document::join(at, "network");
    reader.require_known_keys(node, &at, &["mode", "hosts"])?;
    let mode = reader.word(node, &at, "mode");
    Some(Network {
        mode,
        hosts: reader.strings(node, &at, "hosts", limits::LIST_ITEMS_MAX),
    })
}

fn read_helpers(reader: &mut crate::document::Reader<'_>, node: &Node, at: &str) -> Vec<String> {
    let helpers = reader.strings(node, at, "helpers", limits::LIST_ITEMS_MAX);
    for (index, helper) in helpers.iter().enumerate() {
        if !is_helper(helper) {
            let at = format!("{at}.helpers[{index}]");
            let shown = crate::text::elided(helper, 60);
            let message = format!("`{shown}` is not the name of a helper group");
            let place = node
                .get("helpers")
                .and_then(|helpers| helpers.at(index))
                .unwrap_or(node);
            reader.error(
                place,
                &at,
                message,
                Some("write it like `safety.fs/v1`".to_owned()),
            );
        }
    }
    helpers
}

/// [`HELPER_PATTERN`], by hand: one pattern does not justify a regex engine.
fn is_helper(helper: &str) -> bool {
    let (path, group) = match helper.split_once('#') {
        Some((path, group)) => (path, Some(group)),
        None => (helper, None),
    };
    let Some((namespace, version)) = path.rsplit_once("/v") else {
        return false;
    };
    let lower = |byte: u8| byte.is_ascii_lowercase();
    namespace.bytes().next().is_some_and(lower)
        && namespace
            .bytes()
            .all(|b| lower(b) || b.is_ascii_digit() || matches!(b, b'.' | b'-'))
        && !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_digit())
        && group.is_none_or(|group| {
            !group.is_empty()
                && group
                    .bytes()
                    .all(|b| lower(b) || b.is_ascii_digit() || b == b'-')
        })
}
