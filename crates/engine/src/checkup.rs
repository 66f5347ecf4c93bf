//! Everything there is to say about documents before they are saved or run: findings, risk,
//! state, variables, whether a name is taken. `ringfence check` and the Studio's editor ask
//! here, so that both say the same.

use std::path::{Path, PathBuf};

use model::Environment;
use model::document::json::Lines;
use model::document::safety::Source;
use model::document::{self, FileShape};
use model::govern::consent::{Granted, Variable};
use model::policy::Baseline;
use model::policy::assessment::{self, Assessment, UsableDocument};

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::tool::Tool;

/// One document, with its grants and name clashes.
#[derive(Clone, Debug)]
pub struct Checkup {
    /// What the text alone says.
    pub assessed: Assessment,
    /// The variables it reads, and whether each is set and granted.
    pub variables: Vec<Variable>,
    /// Whether a tool of ours has its name.
    pub is_taken: bool,
}

/// A text of documents, checked.
#[derive(Clone, Debug)]
pub struct CheckedText {
    /// Whether it holds one document or a list.
    pub shape: FileShape,
    /// Each document.
    pub documents: Vec<Checkup>,
}

/// What a text is checked against. Without a home there is no engine: nothing is granted,
/// and only bundled tools have names.
#[derive(Debug)]
pub struct CheckInputs<'a> {
    /// What the operator set.
    pub baseline: &'a Baseline,
    /// The variables that are set.
    pub environment: &'a Environment,
    /// The bundled tools.
    pub catalog: &'a Catalog,
    /// The home, if there is one.
    pub engine: Option<&'a Engine>,
}

/// Where a text comes from.
#[derive(Clone, Copy, Debug)]
pub enum TextPlace<'a> {
    /// This file, links resolved.
    File(&'a Path),
    /// Standard input: grants are for exactly this document.
    Stream,
    /// An editor, about to be saved as the tool of its name.
    Draft,
}

impl CheckInputs<'_> {
    /// Checks every document of a text.
    #[must_use]
    pub fn check(&self, text: &str, place: TextPlace<'_>) -> CheckedText {
        let file = document::parse(text);
        let lines = Lines::new(text);
        let look = |item| {
            let assessed =
                assessment::assess(item, &lines, self.baseline, self.environment, Source::User);
            self.look(assessed, place)
        };
        CheckedText {
            shape: file.shape,
            documents: file.items.into_iter().map(look).collect(),
        }
    }

    /// A document's grants, and its state if the text is that of a tool.
    fn look(&self, mut assessed: Assessment, place: TextPlace<'_>) -> Checkup {
        let Some(usable) = &mut assessed.usable else {
            return Checkup {
                assessed,
                variables: Vec::new(),
                is_taken: false,
            };
        };
        let name = usable.document.name.clone();
        let digest = usable.facts.digest.to_string();
        let granted = match self.engine {
            None => Granted::nothing(),
            Some(engine) => {
                let tool = engine.tool(&name).ok();
                match tool.filter(|tool| is_its_text(engine, tool, usable, place)) {
                    Some(tool) => {
                        (usable.facts.state, usable.facts.missing) =
                            tool.lifecycle(self.environment);
                        tool.granted
                    }
                    None => engine.granted_in(&name, place.kept_by(&digest).as_deref()),
                }
            }
        };
        let is_taken = match self.engine {
            Some(engine) => engine.is_name_taken(&name, &digest),
            None => self.catalog.is_taken(&name, &digest),
        };
        let variables = granted.variables(&usable.document, self.environment);
        Checkup {
            assessed,
            variables,
            is_taken,
        }
    }
}

impl TextPlace<'_> {
    /// The place by which grants are kept.
    fn kept_by(self, digest: &str) -> Option<PathBuf> {
        match self {
            TextPlace::File(path) => Some(path.to_path_buf()),
            TextPlace::Stream => Some(stream_place(digest)),
            TextPlace::Draft => None,
        }
    }
}

/// The place of a document that came by standard input.
#[must_use]
pub fn stream_place(digest: &str) -> PathBuf {
    PathBuf::from(format!("- {digest}"))
}

/// Whether a text is the one that a tool was read from: the same file, or in an editor the
/// same document.
fn is_its_text(
    engine: &Engine,
    tool: &Tool,
    usable: &UsableDocument,
    place: TextPlace<'_>,
) -> bool {
    match place {
        TextPlace::File(path) => file_of(engine, tool).as_deref() == Some(path),
        TextPlace::Stream => false,
        TextPlace::Draft => tool.file.is_some() && tool.usable.facts.digest == usable.facts.digest,
    }
}

/// The file of the user's own tool, links resolved.
fn file_of(engine: &Engine, tool: &Tool) -> Option<PathBuf> {
    let path = engine.registry().folder().path(tool.file.as_deref()?);
    path.canonicalize().ok()
}

impl Engine {
    /// Checks a text as it is typed, under the settings in force.
    pub fn check_draft(&self, text: &str) -> Result<CheckedText, EngineError> {
        let now = self.registry().current();
        let environment = self.environment()?;
        let inputs = CheckInputs {
            baseline: &now.baseline,
            environment: &environment,
            catalog: self.catalog(),
            engine: Some(self),
        };
        Ok(inputs.check(text, TextPlace::Draft))
    }

    /// A tool by its name, with its state and grants.
    pub fn check_tool(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<(Tool, Checkup), EngineError> {
        let tool = self.tool(name)?;
        let mut usable = UsableDocument::clone(&tool.usable);
        (usable.facts.state, usable.facts.missing) = tool.lifecycle(environment);
        let variables = tool.granted.variables(&tool.usable.document, environment);
        let checkup = Checkup {
            assessed: Assessment {
                name: Some(name.to_owned()),
                usable: Some(usable),
                findings: tool.findings.clone(),
            },
            variables,
            is_taken: false,
        };
        Ok((tool, checkup))
    }
}
