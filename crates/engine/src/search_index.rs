//! The search index of this process: one for all callers, brought up to date when a
//! snapshot is first searched, and seen by each caller only as far as the gates let
//! a call of theirs go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use find::search::{Index, SearchEntry, View};
use model::caller::Caller;
use model::document::Document;
use model::document::codecall::{self, Metadata};
use model::document::digest::ToolDigest;
use model::document::json::JsonKind;
use model::document::lifecycle;
use model::document::safety::Source;
use model::sync::lock;
use serde_json::Value;

use crate::gates;
use crate::limit;
use crate::request::{CallRequest, CallTarget};
use crate::services::VariableSource;
use crate::snapshot::Snapshot;
use crate::tool::Tool;

/// The index of a process. Searches go side by side; only bringing it up to date
/// keeps them waiting.
#[derive(Debug, Default)]
pub(crate) struct SearchIndex {
    latest: RwLock<Indexed>,
}

#[derive(Debug, Default)]
struct Indexed {
    /// The snapshot it was made from; none at first.
    serial: u64,
    index: Index,
    known: BTreeMap<String, Known>,
    /// The tools that need variables.
    needing: Vec<String>,
    /// What each caller may see of it, variables aside; the oldest first.
    views: Mutex<Vec<(Caller, Arc<View>)>>,
}

/// What of a tool the index was told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    digest: ToolDigest,
    title: Option<String>,
    app: String,
}

/// What one caller can search at one moment.
#[derive(Debug)]
pub(crate) struct Searchable<'a> {
    pub(crate) index: &'a Index,
    pub(crate) view: Arc<View>,
}

impl SearchIndex {
    /// Searches what the caller of a request may find.
    pub(crate) fn search<T>(
        &self,
        now: &Snapshot,
        request: &CallRequest,
        variables: &VariableSource,
        search: impl FnOnce(&Searchable<'_>) -> T,
    ) -> T {
        let indexed = self.up_to_date(now);
        let view = indexed.view(now, request);
        search(&Searchable {
            view: indexed.with_variables(variables, now, view),
            index: &indexed.index,
        })
    }

    fn up_to_date(&self, now: &Snapshot) -> RwLockReadGuard<'_, Indexed> {
        // A poisoned lock is taken all the same: `serial` says whether the index is
        // whole.
        let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
        if latest.serial == now.serial {
            return latest;
        }
        drop(latest);
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        latest.follow(now);
        // Downgraded, not released: in between a search with an older snapshot could
        // turn the index back.
        RwLockWriteGuard::downgrade(latest)
    }
}

impl Indexed {
    /// Puts in what is new, takes out what is gone, leaves the rest alone.
    fn follow(&mut self, now: &Snapshot) {
        if self.serial == now.serial {
            return;
        }
        // Set at the end. After a panic in between, the next search starts over.
        self.serial = 0;
        let views = self.views.get_mut();
        views.unwrap_or_else(PoisonError::into_inner).clear();
        let tools = now.tools().filter(|tool| tool.body.native().is_none());
        let current: BTreeMap<_, _> = tools.map(|tool| (name(tool), tool)).collect();
        let (index, known) = (&mut self.index, &mut self.known);
        known.retain(|name, _| current.contains_key(name.as_str()) || !index.remove(name));
        for (name, tool) in &current {
            let fresh = told(tool);
            if known.get(*name) != Some(&fresh) {
                index.put(&entry(tool, &fresh));
                known.insert((*name).to_owned(), fresh);
            }
        }
        let needing = current.into_iter().filter(|(_, tool)| needs(tool));
        self.needing = needing.map(|(name, _)| name.to_owned()).collect();
        self.serial = now.serial;
    }

    /// What a caller may see by the settings alone. Asked once for each snapshot,
    /// for it takes a look at every tool.
    fn view(&self, now: &Snapshot, request: &CallRequest) -> Arc<View> {
        let caller = &request.caller;
        let views = || lock(&self.views);
        if let Some((_, view)) = views().iter().find(|(known, _)| known == caller) {
            return Arc::clone(view);
        }
        // As a script of this caller would call it.
        let mut asked = request.child("", Value::Null);
        let view = self.index.view(|name| {
            asked.target = CallTarget::Name(name.to_owned());
            gates::settle(now, &asked).is_ok()
        });
        let view = Arc::new(view);
        let mut views = views();
        if views.len() == limit::SEARCH_VIEWS_MAX {
            views.remove(0);
        }
        views.push((caller.clone(), Arc::clone(&view)));
        view
    }

    /// The view without the tools whose variables are not set now. If the variables
    /// cannot be read, without every tool that needs any.
    fn with_variables(
        &self,
        variables: &VariableSource,
        now: &Snapshot,
        view: Arc<View>,
    ) -> Arc<View> {
        if self.needing.is_empty() {
            return view;
        }
        let environment = variables.read().ok();
        let is_set = |name: &str| {
            let (tool, environment) = (now.tool(name)?, environment.as_ref()?);
            let missing = lifecycle::missing(&tool.usable.document, environment);
            Some(missing.is_empty() && tool.ungranted().is_empty())
        };
        let needing = self.needing.iter().map(String::as_str);
        let mut lacking = needing.filter(|name| is_set(name) != Some(true)).peekable();
        if lacking.peek().is_none() {
            return view;
        }
        Arc::new(self.index.without(&view, lacking))
    }
}

fn told(tool: &Tool) -> Known {
    let document = &tool.usable.document;
    Known {
        digest: tool.usable.facts.digest,
        title: title(document),
        app: app(document, tool.source),
    }
}

fn needs(tool: &Tool) -> bool {
    !tool.usable.document.static_variables.is_empty()
}

fn entry<'a>(tool: &'a Tool, known: &'a Known) -> SearchEntry<'a> {
    let document = &tool.usable.document;
    SearchEntry {
        name: &document.name,
        title: known.title.as_deref(),
        description: &document.description,
        params: &document.params,
        tags: &document.tags,
        category: document.category.as_deref(),
        app: &known.app,
    }
}

fn name(tool: &Tool) -> &str {
    &tool.usable.document.name
}

fn title(document: &Document) -> Option<String> {
    match &document.tree().get("title")?.kind {
        JsonKind::String(title) => Some(title.clone()),
        JsonKind::Null
        | JsonKind::Bool(_)
        | JsonKind::Number(_)
        | JsonKind::Array(_)
        | JsonKind::Object(_) => None,
    }
}

/// The application a tool is part of.
pub(crate) fn app(document: &Document, source: Source) -> String {
    let metadata = Metadata::of(document);
    codecall::app_id(document, &metadata, source == Source::Builtin)
}
