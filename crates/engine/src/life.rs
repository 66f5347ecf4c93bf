//! The life of a document as a file: new, imported, marked, exported, deleted.
//! Everything is checked before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use model::document::digest;
use model::document::environment::Environment;
use model::document::finding::Finding;
use model::document::json::Lines;
use model::document::safety::Source;
use model::document::{self, Document, ParsedDocument};
use model::govern::consent::{Granted, Variable};
use model::govern::person::Actor;
use model::policy::Baseline;
use model::policy::assessment::{self, Assessment, UsableDocument};
use model::record::audit::{Act, Notice};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::limit;
use crate::native::Native;
use crate::tool::Tool;
use store::clock::now_ms;

/// The result for one document of an import.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its name, if it has one; the new one, if it was given another.
    pub name: Option<String>,
    /// The name it came with, where it was given another.
    pub was: Option<String>,
    /// The variables it uses, and how they stand.
    pub variables: Vec<Variable>,
    /// Whether it is in the tools folder now.
    pub ok: bool,
    /// What validation found.
    pub findings: Vec<Finding>,
    /// Why it is not there.
    pub why: Option<String>,
}

/// How documents are taken in.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Put them in the place of tools with the same names.
    pub replace: bool,
    /// What goes before each name.
    pub prefix: Option<String>,
    /// Other names for some of them; these get no prefix.
    pub renames: BTreeMap<String, String>,
}

impl ImportOptions {
    /// The name a document is to have.
    fn name_for(&self, name: &str) -> String {
        let prefixed = || format!("{}{name}", self.prefix.as_deref().unwrap_or(""));
        self.renames.get(name).cloned().unwrap_or_else(prefixed)
    }
}

impl Engine {
    /// A tool of one's own by its name.
    pub fn own_tool(&self, name: &str) -> Result<Tool, EngineError> {
        let tool = self.tool(name)?;
        match tool.source {
            Source::User => Ok(tool),
            Source::Builtin | Source::Server => Err(EngineError::Bundled(name.to_owned())),
        }
    }

    /// A tool by its name, published or not.
    pub fn tool(&self, name: &str) -> Result<Tool, EngineError> {
        let now = self.registry().current();
        let absent = || EngineError::NoSuchTool {
            name: name.to_owned(),
            why: now.why_not(name),
            nearest: now.nearest(name).map(str::to_owned),
        };
        now.tool(name).cloned().ok_or_else(absent)
    }

    /// Writes a new document from the template.
    pub fn create(&self, name: &str) -> Result<PathBuf, EngineError> {
        let text = template(name);
        let Some(mut document) = sound_document(&text) else {
            return Err(EngineError::Name(name.to_owned()));
        };
        document.set_tool_id(digest::tool_id(&document));
        self.claim(name, false)?;
        self.forget_consent(name)?;
        self.write(&document, false)
    }

    /// Imports documents as drafts. Each is assessed on this baseline; the safety record
    /// it came with is replaced.
    pub fn import(&self, text: &str, replace: bool) -> Result<Vec<Imported>, EngineError> {
        let how = ImportOptions {
            replace,
            ..ImportOptions::default()
        };
        self.import_as(text, &how)
    }

    /// [`Engine::import`] under other names.
    pub fn import_as(&self, text: &str, how: &ImportOptions) -> Result<Vec<Imported>, EngineError> {
        self.import_by(text, how, Actor::OWNER_AT_TERMINAL)
    }

    /// The same by a person at a door of people.
    pub fn import_by(
        &self,
        text: &str,
        how: &ImportOptions,
        actor: Actor<'_>,
    ) -> Result<Vec<Imported>, EngineError> {
        let now = self.registry().current();
        let environment = self.environment().unwrap_or_default();
        let mut seen = BTreeSet::new();
        let mut imported = Vec::new();
        for item in document::parse(text).items {
            let was = item.name.clone();
            let Assessment {
                name,
                usable,
                findings,
            } = renamed(item, text, how, &now.baseline);
            let variables = usable
                .as_ref()
                .map(|usable| Granted::nothing().variables(&usable.document, &environment));
            let taken = match (usable, &name) {
                (Some(_), Some(name)) if !seen.insert(name.clone()) => {
                    Err("the file holds another document of that name".to_owned())
                }
                (Some(usable), _) => self
                    .take_in(usable, how.replace, actor)
                    .map_err(|fault| not_taken(&fault)),
                (None, _) => Err("the document cannot be used".to_owned()),
            };
            imported.push(Imported {
                was: was.filter(|was| Some(was) != name.as_ref()),
                name,
                variables: variables.unwrap_or_default(),
                ok: taken.is_ok(),
                findings,
                why: taken.err(),
            });
        }
        Ok(imported)
    }

    fn take_in(
        &self,
        usable: UsableDocument,
        replace: bool,
        actor: Actor<'_>,
    ) -> Result<(), EngineError> {
        let safety = usable.safety().clone();
        let UsableDocument {
            mut document,
            facts,
        } = usable;
        self.claim(&document.name, replace)?;
        document.set_tool_id(facts.tool_id);
        document.set_draft(true);
        document.set_tool_safety(safety);
        document.set_update_timestamp(u64::try_from(now_ms()).unwrap_or(0));
        let name = document.name.clone();
        // Before the document is there: what was agreed to was agreed to for another.
        self.forget_consent(&name)?;
        self.write(&document, replace)?;
        // What was published under this name was another text, or has to be
        // published again on purpose.
        if self.store().publications().unpublish(&name)? {
            let message = format!("another document replaced `{name}`");
            self.noticed(taken_back(Act::ToolUnpublished, actor, &name, &message));
        }
        Ok(())
    }

    /// Whether a name can be taken.
    fn claim(&self, name: &str, replace: bool) -> Result<(), EngineError> {
        let now = self.registry().current();
        // Also while code mode is off: it may be on tomorrow. A tool of the toolbox has its name
        // only while its category is enabled.
        if Native::named(name).is_some() || now.toolbox.category(name).is_some() {
            return Err(EngineError::Reserved(name.to_owned()));
        }
        match now.tool(name) {
            Some(tool) if tool.source == Source::Builtin => {
                Err(EngineError::Reserved(name.to_owned()))
            }
            Some(_) if !replace => Err(EngineError::Exists(name.to_owned())),
            Some(_) | None => Ok(()),
        }
    }

    fn write(&self, document: &Document, replace: bool) -> Result<PathBuf, EngineError> {
        let now = self.registry().current();
        let file = now.tool(&document.name).and_then(|tool| tool.file.clone());
        let stem = file.unwrap_or_else(|| stem(&document.name));
        let text = document.to_text();
        let folder = self.registry().folder();
        if replace {
            folder.write(&stem, &text)?;
        } else {
            folder.create(&stem, &text)?;
        }
        self.registry().share(&stem)?;
        Ok(folder.path(&stem))
    }

    /// Raises or clears the draft flag in the file.
    pub(crate) fn mark(&self, tool: &Tool, draft: bool) -> Result<(), EngineError> {
        if tool.usable.document.draft == Some(draft) {
            return Ok(());
        }
        let Some(stem) = &tool.file else {
            return Ok(());
        };
        let text = marked(tool, draft);
        self.registry().folder().write(stem, &text)?;
        self.registry().share(stem)
    }

    /// Documents as text: one as an object, several as an array.
    pub fn export(&self, names: &[String]) -> Result<String, EngineError> {
        let mut texts = Vec::with_capacity(names.len());
        for name in names {
            texts.push(self.tool(name)?.usable.document.to_text());
        }
        Ok(match texts.as_slice() {
            [one] => one.clone(),
            many => format!(
                "[\n{}\n]\n",
                many.iter()
                    .map(|text| text.trim_end())
                    .collect::<Vec<_>>()
                    .join(",\n")
            ),
        })
    }

    /// Moves a document to the trash folder and says where it is.
    pub fn delete(&self, name: &str) -> Result<PathBuf, EngineError> {
        self.delete_by(name, Actor::OWNER_AT_TERMINAL)
    }

    /// The same by a person at a door of people.
    pub fn delete_by(&self, name: &str, actor: Actor<'_>) -> Result<PathBuf, EngineError> {
        let tool = self.own_tool(name)?;
        // Taken back first: a file that cannot be moved must not stay published.
        self.store().publications().unpublish(name)?;
        self.forget_consent(name)?;
        let stem = tool.file.unwrap_or_else(|| stem(name));
        let trash = self.registry().folder().trash(&stem)?;
        self.registry().share(&stem)?;
        let message = format!("`{name}` was moved to the trash");
        let notice = taken_back(Act::ToolDeleted, actor, name, &message);
        self.noticed(notice.detail("digest", &tool.usable.facts.digest.to_string()));
        Ok(trash)
    }

    /// The text of a tool's own file, as it stands there.
    pub fn file_text(&self, tool: &Tool) -> Result<Option<String>, EngineError> {
        let Some(stem) = &tool.file else {
            return Ok(None);
        };
        let path = self.registry().folder().path(stem);
        Ok(store::settings::read_file(&path)?)
    }

    /// A document to start from, which passes its own test.
    #[must_use]
    pub fn template(&self, name: &str) -> String {
        template(name)
    }

    /// Writes the text of one document, as an editor would: every field, the unknown ones
    /// too, stays where its author put it. `seen` stands for the text that was edited;
    /// nothing if the tool is new. What was published stays a publication of the text that
    /// passed.
    pub fn save(&self, name: &str, text: &str, seen: Option<&str>) -> Result<(), SaveFault> {
        let mut judged = self.judge(text);
        let (assessed, usable) = match (judged.pop(), judged.is_empty()) {
            (Some(one), true) => one,
            (_, _) => {
                return Err(SaveFault::Unfit {
                    why: "the text must be one document".to_owned(),
                    findings: Vec::new(),
                });
            }
        };
        let unfit = |why: &str| SaveFault::Unfit {
            why: why.to_owned(),
            findings: assessed.findings.clone(),
        };
        let usable = usable.ok_or_else(|| unfit("the document cannot be used as it stands"))?;
        if usable.document.name != name {
            return Err(unfit(
                "the document has another name; save it as a new tool",
            ));
        }
        let folder = self.registry().folder();
        let known = self.registry().current().tool(name).cloned();
        match (known, seen) {
            (None, None) => {
                self.claim(name, false)?;
                // An earlier tool of that name may have left grants.
                self.forget_consent(name)?;
                let stem = stem(name);
                folder.create(&stem, text).map_err(EngineError::from)?;
                self.registry().share(&stem)?;
            }
            (Some(tool), Some(seen)) => {
                let tool = match tool.source {
                    Source::User => tool,
                    Source::Builtin | Source::Server => {
                        return Err(EngineError::Bundled(name.to_owned()).into());
                    }
                };
                let found = self.file_text(&tool)?.unwrap_or_default();
                if revision(&found) != seen {
                    return Err(SaveFault::Changed(name.to_owned()));
                }
                let stem = tool.file.unwrap_or_else(|| stem(name));
                folder.write(&stem, text).map_err(EngineError::from)?;
                self.registry().share(&stem)?;
            }
            (Some(_), None) => return Err(EngineError::Exists(name.to_owned()).into()),
            (None, Some(_)) => return Err(SaveFault::Changed(name.to_owned())),
        }
        Ok(())
    }

    /// Judges one document as it stands, for running it without taking it in.
    #[must_use]
    pub fn judge(&self, text: &str) -> Vec<(Assessment, Option<Arc<UsableDocument>>)> {
        let now = self.registry().current();
        let lines = Lines::new(text);
        let none = Environment::empty();
        let judge = |item| {
            let assessed = assessment::assess(item, &lines, &now.baseline, &none, Source::User);
            let usable = assessed.usable.clone().map(Arc::new);
            (assessed, usable)
        };
        document::parse(text).items.into_iter().map(judge).collect()
    }
}

fn taken_back(act: Act, actor: Actor<'_>, name: &str, message: &str) -> Notice {
    Notice::new(act, actor.by, actor.through, message).about(name)
}

/// Why a text cannot be a document's.
#[derive(Debug, thiserror::Error)]
pub enum SaveFault {
    /// It is no document, or not one of that name.
    #[error("{why}")]
    Unfit {
        /// Why.
        why: String,
        /// Everything that was seen in it.
        findings: Vec<Finding>,
    },
    /// The file changed since the text was read.
    #[error("the file of `{0}` changed since")]
    Changed(String),
    /// The engine could not.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What stands for the text of a file: another text has another one.
#[must_use]
pub fn revision(text: &str) -> String {
    digest::of_value(&text.into()).unwrap_or_default()
}

/// Why a document was not taken in, and what helps.
fn not_taken(fault: &EngineError) -> String {
    match fault {
        EngineError::Exists(_) => format!("{fault}; pass `--replace` to replace it"),
        EngineError::Reserved(name) => format!(
            "{fault}: `--rename {name}=NEW` imports it under another name, `--prefix` renames all of them"
        ),
        fault => fault.to_string(),
    }
}

/// A document judged under the name it is to have.
fn renamed(
    item: ParsedDocument,
    text: &str,
    how: &ImportOptions,
    baseline: &Baseline,
) -> Assessment {
    let none = Environment::empty();
    let judge = |item, text: &str| {
        let lines = Lines::new(text);
        assessment::assess(item, &lines, baseline, &none, Source::User)
    };
    let name = item.name.as_deref().map(|name| how.name_for(name));
    match (name, &item.document) {
        (Some(name), Some(document)) if name != document.name => {
            let mut document = document.clone();
            document.set_name(name);
            let text = document.to_text();
            match document::parse(&text).items.pop() {
                Some(item) => judge(item, &text),
                None => judge(item, &text),
            }
        }
        (_, _) => judge(item, text),
    }
}

fn sound_document(text: &str) -> Option<Document> {
    document::parse(text).items.pop()?.document
}

/// A file name for a tool: its own name where that is plain, else what is plain
/// of it and a piece of its digest.
fn stem(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let plain: String = name
        .chars()
        .filter(|character| is_plain(*character))
        .take(limit::FILE_STEM_CHARS_MAX)
        .collect();
    let plain = plain.trim_start_matches('.').to_owned();
    if plain == name {
        return plain;
    }
    let digest = digest::of_value(&name.into()).unwrap_or_default();
    let piece: String = digest.chars().take(8).collect();
    format!("{plain}-{piece}")
}

/// A small tool that passes its own test and whose fields explain themselves.
fn template(name: &str) -> String {
    let name = serde_json::Value::from(name);
    format!(
        r#"{{
  "name": {name},
  "description": "Greets a person. Say here when to use the tool and what it returns: {{ greeting: string, length: number }}.",
  "category": "TEXT",
  "tags": ["example"],
  "params": [
    {{
      "name": "who",
      "description": "Whom to greet, such as \"Ada\".",
      "type": "STRING",
      "required": true,
      "testValue": "Ada"
    }}
  ],
  "staticVariables": [],
  "code": "const greeting = `Hello, ${{who.trim()}}!`;\nreturn {{ greeting, length: greeting.length }};",
  "codeType": "Javascript",
  "sandboxOverrides": {{
    "networkMode": "blocked",
    "fileRead": false,
    "fileWrite": false
  }},
  "humanInTheLoop": {{ "mode": "DISABLED" }},
  "draft": true
}}
"#
    )
}

/// The text of a tool that says whether it is a draft.
pub(crate) fn marked(tool: &Tool, draft: bool) -> String {
    let mut document = tool.usable.document.clone();
    if document.draft != Some(draft) {
        document.set_draft(draft);
        document.set_tool_safety(tool.usable.safety().clone());
    }
    document.to_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_do_not_collide() {
        assert_eq!(stem("readFile"), "readFile");
        assert_eq!(stem("a.b-c_1"), "a.b-c_1");
        assert_ne!(stem("a/b"), stem("ab"));
        assert_ne!(stem("a/b"), stem("a\\b"));
        assert!(stem("../../etc/passwd").starts_with("etcpasswd-"));
        assert!(stem("日本").starts_with('-'));
        assert!(stem(&"x".repeat(200)).len() < 100);
    }

    #[test]
    fn the_template_has_no_findings() {
        let item = document::parse(&template("hello"))
            .items
            .pop()
            .expect("an item");
        assert_eq!(item.findings, []);
        assert!(item.document.is_some());
    }
}
