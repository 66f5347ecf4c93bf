//! Which tools a caller is told about: those a call of theirs would find. Listing
//! and calling ask the same gates, so that they cannot disagree.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::caller::{Caller, Origin};
use model::document::safety::Source;
use model::policy::EffectivePolicy;
use model::policy::assessment::UsableDocument;
use model::policy::risk::Risk;
use serde_json::Value;
use upstream::definition::ToolAnnotations;

use crate::engine::Engine;
use crate::gates::{self, HeldTool};
use crate::native::Native;
use crate::refusal::CallRefusal;
use crate::request::{CallRequest, CallTarget};
use crate::services::VariableSource;
use crate::snapshot::Snapshot;
use crate::tool::{Tool, ToolBody};

/// A tool a caller may call.
#[derive(Clone, Debug)]
pub struct CallableTool {
    /// The document and what holds for it.
    pub usable: Arc<UsableDocument>,
    /// Where it comes from.
    pub source: Source,
    /// What runs.
    pub body: ToolBody,
    /// What a call would be held to.
    pub policy: EffectivePolicy,
    /// The risk of a call.
    pub risk: Risk,
}

/// Some of the tools a caller may call, by name.
#[derive(Clone, Debug, Default)]
pub struct ToolPage {
    /// The tools.
    pub tools: Vec<CallableTool>,
    /// Whether others follow.
    pub has_more: bool,
}

/// What a call of a tool may do, for those who decide before they call.
///
/// It is what the policy allows, never what the author claims: a tool that could
/// write is not read-only, whatever its code does today. An MCP server's claims count where
/// they admit to more: its process keeps what it likes, which no policy sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing, here or elsewhere.
    pub read_only: bool,
    /// It may do harm.
    pub destructive: bool,
    /// Whether it can be done twice, if that is known.
    pub idempotent: Option<bool>,
    /// It reaches what is not ours.
    pub open_world: bool,
}

impl CallableTool {
    /// What a call of it may do. A tool that reaches the network may change what is
    /// there, so it is neither read-only nor sure to do no harm. What calls other
    /// tools may do whatever they do.
    #[must_use]
    pub fn hints(&self) -> Hints {
        let calls_others = self
            .body
            .native()
            .is_some_and(|native| !native.only_reads());
        let runs_programs = self
            .body
            .toolbox()
            .is_some_and(|tool| tool.reach().programs);
        let network = self.policy.reaches_out() || calls_others;
        let changes = network || runs_programs || self.policy.file_write || self.policy.destructive;
        let derived = Hints {
            read_only: !changes,
            destructive: changes,
            // What changes nothing can be repeated; of the rest it is not known.
            idempotent: (!changes).then_some(true),
            open_world: network,
        };
        match self.body.server() {
            Some(server) => derived.admitting(&server.definition.annotations),
            None => derived,
        }
    }
}

impl Hints {
    /// The same with what a server says of its tool, where that is the more dangerous.
    /// Without a claim the dangerous one applies, as MCP defines it.
    fn admitting(self, claims: &ToolAnnotations) -> Hints {
        let read_only = self.read_only && claims.read_only == Some(true);
        let may_destroy = !read_only && claims.destructive != Some(false);
        Hints {
            read_only,
            destructive: self.destructive || may_destroy,
            idempotent: self.idempotent.filter(|_| claims.idempotent == Some(true)),
            open_world: self.open_world,
        }
    }
}

/// What a caller's lists are made from. As long as it is the same, so are they, and making
/// them again would only cost time.
#[derive(Clone, Debug)]
pub struct ListStamp {
    /// What a call would be judged by.
    snapshot: Option<Arc<Snapshot>>,
    /// The variables that are set, if they can be read. A tool that needs another does not
    /// exist; what they hold is in no list.
    variables: Option<BTreeSet<String>>,
}

impl PartialEq for ListStamp {
    fn eq(&self, other: &ListStamp) -> bool {
        let is_same = match (&self.snapshot, &other.snapshot) {
            // Held on both sides, so no other can have got its place.
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same && self.variables == other.variables
    }
}

impl Engine {
    /// What the lists of a caller are made from now.
    #[must_use]
    pub fn list_stamp(&self, caller: &Caller) -> ListStamp {
        let variables = self.variable_source().read().ok();
        ListStamp {
            snapshot: self.current_for(caller),
            variables: variables.map(|set| set.names().map(str::to_owned).collect()),
        }
    }

    /// The tools a caller may call through a door, by name. Rules look at
    /// arguments, so what they say is known only when a call is made.
    #[must_use]
    pub fn callable_tools(&self, caller: &Caller, origin: Origin) -> Vec<CallableTool> {
        match self.current_for(caller) {
            Some(now) => self.callable_in(&now, caller, origin),
            None => Vec::new(),
        }
    }

    /// What a call of a caller would be judged by if it came now. Nothing, and a word
    /// to the operator, where that cannot be told; a call would not get in either.
    #[must_use]
    pub fn current_for(&self, caller: &Caller) -> Option<Arc<Snapshot>> {
        let preview = self
            .trust_schedule()
            .preview(&self.registry().current(), caller);
        let alarmed = preview.map_err(|why| {
            self.alarm(&format!("trust cannot be computed: {why}"));
        });
        alarmed.ok()
    }

    /// The tools an MCP client is shown in its list. With progressive listing on these are ours
    /// and those whose documents ask to be listed; the client finds the others with
    /// `list_tools` and calls them by name. Who may not use that sees everything, or
    /// they would find nothing.
    #[must_use]
    pub fn listed(&self, caller: &Caller) -> Vec<CallableTool> {
        self.listed_page(caller, "", usize::MAX).tools
    }

    /// A page of that list: the tools whose names come after one, at most so many. Only they
    /// are judged, or a list of many pages would judge every tool for each page.
    #[must_use]
    pub fn listed_page(&self, caller: &Caller, after: &str, most: usize) -> ToolPage {
        let Some(now) = self.current_for(caller) else {
            return ToolPage::default();
        };
        let mut request = CallRequest::new(caller.clone(), Origin::Mcp, "", Value::Null);
        let mut reached = |tool: &Tool| {
            request.target = CallTarget::Name(tool.usable.document.name.clone());
            reach(&now, &request, self.variable_source()).ok()
        };
        let tools: Vec<_> = now.tools().collect();
        let mut has = |native| {
            let mut natives = tools
                .iter()
                .filter(|tool| tool.body.native() == Some(native));
            natives.any(|tool| reached(tool).is_some())
        };
        let is_short = has(Native::List) && has(Native::Load);
        let progressive = now.config.progressive;
        let is_in_list = |tool: &&Tool| {
            !is_short || tool.body.native().is_some() || progressive.lists(&tool.usable.document)
        };
        let first = tools.partition_point(|tool| tool.usable.document.name.as_str() <= after);
        let rest = tools.into_iter().skip(first).filter(is_in_list);
        let mut rest = rest.filter_map(reached);
        let tools = rest.by_ref().take(most).collect();
        let has_more = rest.next().is_some();
        ToolPage { tools, has_more }
    }

    /// The prompts and resources of MCP servers that a caller may use, by the same gates.
    #[must_use]
    pub fn server_items(&self, caller: &Caller) -> Vec<CallableTool> {
        let Some(now) = self.current_for(caller) else {
            return Vec::new();
        };
        let mut request = CallRequest::new(caller.clone(), Origin::Mcp, "", Value::Null);
        let offered = now.servers().items().filter_map(|tool| {
            request.target = CallTarget::Name(tool.usable.document.name.clone());
            reach(&now, &request, self.variable_source()).ok()
        });
        offered.collect()
    }

    fn callable_in(&self, now: &Snapshot, caller: &Caller, origin: Origin) -> Vec<CallableTool> {
        let mut request = CallRequest::new(caller.clone(), origin, "", Value::Null);
        let offered = now.tools().filter_map(|tool| {
            request.target = CallTarget::Name(tool.usable.document.name.clone());
            reach(now, &request, self.variable_source()).ok()
        });
        offered.collect()
    }
}

/// A tool that a call would reach, with what the call would be held to.
pub(crate) fn reach(
    now: &Snapshot,
    request: &CallRequest,
    variables: &VariableSource,
) -> Result<CallableTool, CallRefusal> {
    let HeldTool {
        found,
        policy,
        risk,
        ..
    } = gates::reach(now, request, variables)?;
    Ok(CallableTool {
        usable: found.usable,
        source: found.source,
        body: found.body,
        policy: policy.into_owned(),
        risk: (*risk).clone(),
    })
}
