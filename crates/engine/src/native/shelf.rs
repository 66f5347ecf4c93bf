//! The search index of this process: one for all callers, brought up to date when a
//! snapshot is first searched, and seen by each caller only as far as the gates let
//! a call of theirs go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::caller::Caller;
use model::codecall::{self, Metadata};
use model::digest::ToolDigest;
use model::document::Document;
use model::json::Kind;
use model::lifecycle;
use model::safety::Source;
use model::search::{Entry, Index, View};

use crate::Engine;
use crate::call::{CallRequest, Target};
use crate::offer;
use crate::registry::{Snapshot, Tool};

/// Callers whose views are kept at one time.
const VIEWS_MAX: usize = 64;

/// The index of a process.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    latest: Mutex<Shelved>,
}

#[derive(Debug, Default)]
struct Shelved {
    /// The snapshot it was made from; none at first.
    serial: u64,
    index: Arc<Index>,
    known: Arc<BTreeMap<String, Known>>,
    /// What each caller may see of it, variables aside; the oldest first.
    views: Vec<(Caller, Arc<View>)>,
}

/// What of a tool the index was told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    digest: ToolDigest,
    title: Option<String>,
    app: String,
    /// Whether it needs variables.
    needs: bool,
}

/// What one caller can search at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Searchable {
    pub(crate) index: Arc<Index>,
    pub(crate) view: Arc<View>,
    known: Arc<BTreeMap<String, Known>>,
}

impl Searchable {
    /// The application a tool is part of.
    pub(crate) fn app(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(|known| known.app.as_str())
    }
}

impl Shelf {
    /// What the caller of a request may find.
    pub(crate) fn searchable(
        &self,
        engine: &Engine,
        now: &Snapshot,
        request: &CallRequest,
    ) -> Searchable {
        let mut searchable = {
            let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            latest.follow(now);
            Searchable {
                view: latest.view(now, request),
                index: Arc::clone(&latest.index),
                known: Arc::clone(&latest.known),
            }
        };
        if searchable.known.values().any(|known| known.needs) {
            searchable.view = Arc::new(with_variables(engine, now, &searchable));
        }
        searchable
    }
}

impl Shelved {
    /// Puts in what is new, takes out what is gone, leaves the rest alone.
    fn follow(&mut self, now: &Snapshot) {
        if self.serial == now.serial {
            return;
        }
        self.serial = now.serial;
        self.views.clear();
        let tools = now.tools().filter(|tool| tool.native.is_none());
        let current: BTreeMap<_, _> = tools.map(|tool| (name(tool).to_owned(), tool)).collect();
        let index = Arc::make_mut(&mut self.index);
        let known = Arc::make_mut(&mut self.known);
        known.retain(|name, _| current.contains_key(name) || !index.remove(name));
        for (name, tool) in current {
            let fresh = told(tool);
            if known.get(&name) != Some(&fresh) {
                index.put(&entry(tool, &fresh));
                known.insert(name, fresh);
            }
        }
    }

    /// What a caller may see by the settings alone. Asked once for each snapshot,
    /// for it takes a look at every tool.
    fn view(&mut self, now: &Snapshot, request: &CallRequest) -> Arc<View> {
        let caller = &request.caller;
        if let Some((_, view)) = self.views.iter().find(|(known, _)| known == caller) {
            return Arc::clone(view);
        }
        let mut asked = super::inner(request, "");
        let view = self.index.view(|name| {
            asked.target = Target::Name(name.to_owned());
            offer::settled(now, &asked)
        });
        let view = Arc::new(view);
        if self.views.len() == VIEWS_MAX {
            self.views.remove(0);
        }
        self.views.push((caller.clone(), Arc::clone(&view)));
        view
    }
}

/// Without the tools whose variables are not set now. If nobody can say, without all
/// that need any.
fn with_variables(engine: &Engine, now: &Snapshot, searchable: &Searchable) -> View {
    let environment = engine.environment().ok();
    searchable.index.narrowed(&searchable.view, |name| {
        let needs = searchable.known.get(name).is_none_or(|known| known.needs);
        let set = || {
            let (tool, environment) = (now.tool(name)?, environment.as_ref()?);
            Some(lifecycle::missing(&tool.sound.document, environment).is_empty())
        };
        !needs || set() == Some(true)
    })
}

fn told(tool: &Tool) -> Known {
    let document = &tool.sound.document;
    Known {
        digest: tool.sound.judged.digest,
        title: title(document),
        app: app(document, tool.source),
        needs: !document.static_variables.is_empty(),
    }
}

fn entry<'a>(tool: &'a Tool, known: &'a Known) -> Entry<'a> {
    let document = &tool.sound.document;
    Entry {
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
    &tool.sound.document.name
}

fn title(document: &Document) -> Option<String> {
    match &document.tree().get("title")?.kind {
        Kind::String(title) => Some(title.clone()),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Array(_) | Kind::Object(_) => None,
    }
}

/// The application a tool is part of.
pub(super) fn app(document: &Document, source: Source) -> String {
    let metadata = Metadata::of(document);
    codecall::app_id(document, &metadata, source == Source::Builtin)
}
