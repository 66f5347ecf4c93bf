//! Compares accepted with current definitions, item by item.

use std::collections::{BTreeMap, BTreeSet};

use model::words;
use serde_json::Value;

use super::{PinnedItem, PinnedServer, SeenItem, SeenServer};
use crate::definition::{
    Definition, ItemKey, PromptDefinition, ServerDefinition, ToolAnnotations, ToolDefinition,
};
use crate::schema::{self, DiffEffect, FieldDiff};

words! {
    /// The class of a change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ChangeClass {
        /// None, or back to the text that was accepted last.
        Same = "same",
        /// It accepts less.
        Narrower = "narrower",
        /// It has other words.
        Wording = "wording",
        /// It accepts more, asks for more, or is more dangerous.
        Wider = "wider",
        /// It may be another server.
        Identity = "identity",
        /// It was not there.
        New = "new",
        /// It was there under another name.
        Renamed = "renamed",
        /// It is there no more.
        Gone = "gone",
    }
}

/// What changed: the server itself or one of its items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeSubject {
    /// The server itself.
    Server,
    /// One of its items.
    Item(ItemKey),
}

/// The change of one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemChange {
    /// What changed.
    pub subject: ChangeSubject,
    /// How.
    pub class: ChangeClass,
    /// Every difference, in the order of the fields.
    pub diffs: Vec<FieldDiff>,
    /// Its previous key.
    pub renamed_from: Option<ItemKey>,
    /// The digest that was accepted.
    pub old_digest: Option<String>,
    /// The digest that is seen.
    pub new_digest: Option<String>,
}

/// Compares everything. The server comes first, then the items by their keys; those
/// without a change are listed too. On first sight everything is new.
#[must_use]
pub fn compare(pinned: &PinnedServer, seen: &SeenServer) -> Vec<ItemChange> {
    let mut changes = vec![server_change(pinned, seen)];
    let accepted = pinned
        .items
        .iter()
        .filter(|(_, item)| item.accepted.is_some());
    let accepted: BTreeMap<&ItemKey, &PinnedItem> = accepted.collect();
    let gone: Vec<&ItemKey> = accepted
        .keys()
        .filter(|key| !seen.items.contains_key(**key))
        .copied()
        .collect();
    // Only items that are gone: the body of one that is still there is a
    // copy, not a new name.
    let bodies: BTreeMap<String, &ItemKey> = gone
        .iter()
        .filter_map(|key| {
            Some((
                body(&accepted.get(key)?.accepted.as_ref()?.definition),
                *key,
            ))
        })
        .collect();
    let keys: BTreeSet<&ItemKey> = accepted.keys().copied().chain(seen.items.keys()).collect();
    for key in keys {
        let change = match (accepted.get(key), seen.items.get(key)) {
            (Some(item), Some(seen)) => changed(key, item, seen),
            (Some(item), None) => gone_change(key, item),
            (None, Some(seen)) => new_change(key, seen, &bodies),
            (None, None) => continue,
        };
        changes.push(change);
    }
    changes
}

fn server_change(pinned: &PinnedServer, seen: &SeenServer) -> ItemChange {
    let Some(accepted) = &pinned.server else {
        return ItemChange {
            subject: ChangeSubject::Server,
            class: ChangeClass::New,
            diffs: Vec::new(),
            renamed_from: None,
            old_digest: None,
            new_digest: Some(seen.pin.digest.clone()),
        };
    };
    let diffs = server_diffs(&accepted.definition, &seen.server);
    ItemChange {
        subject: ChangeSubject::Server,
        class: class_of(&diffs, accepted.pin == seen.pin),
        diffs,
        renamed_from: None,
        old_digest: Some(accepted.pin.digest.clone()),
        new_digest: Some(seen.pin.digest.clone()),
    }
}

fn changed(key: &ItemKey, item: &PinnedItem, seen: &SeenItem) -> ItemChange {
    let accepted = item.accepted.as_ref();
    let diffs = match accepted {
        Some(_) if item.knows(&seen.pin.digest) => Vec::new(),
        Some(accepted) => item_diffs(&accepted.definition, &seen.definition),
        None => Vec::new(),
    };
    ItemChange {
        subject: ChangeSubject::Item(key.clone()),
        class: class_of(&diffs, item.knows(&seen.pin.digest)),
        diffs,
        renamed_from: None,
        old_digest: accepted.map(|accepted| accepted.pin.digest.clone()),
        new_digest: Some(seen.pin.digest.clone()),
    }
}

fn gone_change(key: &ItemKey, item: &PinnedItem) -> ItemChange {
    ItemChange {
        subject: ChangeSubject::Item(key.clone()),
        class: ChangeClass::Gone,
        diffs: Vec::new(),
        renamed_from: None,
        old_digest: item
            .accepted
            .as_ref()
            .map(|accepted| accepted.pin.digest.clone()),
        new_digest: None,
    }
}

fn new_change(key: &ItemKey, seen: &SeenItem, bodies: &BTreeMap<String, &ItemKey>) -> ItemChange {
    // The same definition under a new name is shown as renamed, so that the owner sees
    // what it was.
    let from = bodies
        .get(&body(&seen.definition))
        .map(|key| (*key).clone());
    ItemChange {
        subject: ChangeSubject::Item(key.clone()),
        class: match from {
            Some(_) => ChangeClass::Renamed,
            None => ChangeClass::New,
        },
        diffs: Vec::new(),
        renamed_from: from,
        old_digest: None,
        new_digest: Some(seen.pin.digest.clone()),
    }
}

/// Everything but the name, spelled in one way, with the kind in front.
fn body(definition: &Definition) -> String {
    let mut value = definition.to_value();
    let name = match definition {
        Definition::Tool(_) | Definition::Prompt(_) => "name",
        Definition::ResourceTemplate(_) => "uriTemplate",
        Definition::Resource(_) => "uri",
    };
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove(name);
    }
    let mut text = format!("{:?} ", definition.key().kind).into_bytes();
    // A pinned definition has a canonical form.
    let _ = model::canonical::write(&value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The class of the worst difference. A text that differs without a difference that
/// has a name is another wording.
fn class_of(diffs: &[FieldDiff], is_known: bool) -> ChangeClass {
    // A revert to an accepted text needs no second review.
    if is_known {
        return ChangeClass::Same;
    }
    match diffs.iter().map(|diff| diff.effect).max() {
        // Fails closed: texts that differ in a way that has no name are not the same.
        None | Some(DiffEffect::Wording) => ChangeClass::Wording,
        Some(DiffEffect::Narrower) => ChangeClass::Narrower,
        Some(DiffEffect::Wider) => ChangeClass::Wider,
        Some(DiffEffect::Identity) => ChangeClass::Identity,
    }
}

fn server_diffs(old: &ServerDefinition, new: &ServerDefinition) -> Vec<FieldDiff> {
    let (olds, news) = (old.to_value(), new.to_value());
    let fields = [
        ("name", DiffEffect::Identity),
        // Versions change with each release. What a release does shows in the items.
        ("version", DiffEffect::Wording),
        ("instructions", DiffEffect::Wording),
        ("origin", DiffEffect::Identity),
    ];
    field_diffs("", &olds, &news, &fields)
}

/// The differences between two definitions of one item.
pub(super) fn item_diffs(old: &Definition, new: &Definition) -> Vec<FieldDiff> {
    match (old, new) {
        (Definition::Tool(old), Definition::Tool(new)) => tool_diffs(old, new),
        (Definition::Prompt(old), Definition::Prompt(new)) => prompt_diffs(old, new),
        (Definition::ResourceTemplate(old), Definition::ResourceTemplate(new)) => {
            place_diffs("uriTemplate", &old.to_value(), &new.to_value())
        }
        (Definition::Resource(old), Definition::Resource(new)) => {
            place_diffs("uri", &old.to_value(), &new.to_value())
        }
        (
            Definition::Tool(_)
            | Definition::Prompt(_)
            | Definition::ResourceTemplate(_)
            | Definition::Resource(_),
            _,
        ) => {
            vec![FieldDiff {
                path: String::new(),
                effect: DiffEffect::Wider,
                old: Some(old.to_value()),
                new: Some(new.to_value()),
            }]
        }
    }
}

fn tool_diffs(old: &ToolDefinition, new: &ToolDefinition) -> Vec<FieldDiff> {
    let fields = [
        ("name", DiffEffect::Wider),
        ("title", DiffEffect::Wording),
        ("description", DiffEffect::Wording),
    ];
    let mut diffs = field_diffs("", &old.to_value(), &new.to_value(), &fields);
    diffs.extend(schema::diffs(
        "inputSchema",
        &old.input_schema,
        &new.input_schema,
    ));
    diffs.extend(output_diffs(
        old.output_schema.as_ref(),
        new.output_schema.as_ref(),
    ));
    diffs.extend(annotation_diffs(&old.annotations, &new.annotations));
    diffs
}

fn output_diffs(old: Option<&Value>, new: Option<&Value>) -> Vec<FieldDiff> {
    match (old, new) {
        (None, None) => Vec::new(),
        // Exact: a result that has more is data that its owner has not agreed to.
        (Some(old), Some(new)) => schema::exact_diffs("outputSchema", old, new),
        (old, new) => vec![FieldDiff {
            path: "outputSchema".to_owned(),
            effect: DiffEffect::Wider,
            old: old.cloned(),
            new: new.cloned(),
        }],
    }
}

/// A claim towards danger is wider. A claim towards safety counts as wording: a client
/// may ask less because of it, so the old one is served until it is reviewed.
fn annotation_diffs(old: &ToolAnnotations, new: &ToolAnnotations) -> Vec<FieldDiff> {
    let mut diffs = Vec::new();
    if old.title != new.title {
        diffs.push(FieldDiff {
            path: "annotations.title".to_owned(),
            effect: DiffEffect::Wording,
            old: old.title.clone().map(Value::String),
            new: new.title.clone().map(Value::String),
        });
    }
    for ((name, old, danger), (_, new, _)) in old.hints().into_iter().zip(new.hints()) {
        let is_danger = |claim: Option<bool>| claim.unwrap_or(danger) == danger;
        let effect = match (is_danger(old), is_danger(new)) {
            (false, true) => DiffEffect::Wider,
            (true, false) | (true, true) | (false, false) => DiffEffect::Wording,
        };
        if old != new {
            diffs.push(FieldDiff {
                path: format!("annotations.{name}"),
                effect,
                old: old.map(Value::Bool),
                new: new.map(Value::Bool),
            });
        }
    }
    diffs
}

fn prompt_diffs(old: &PromptDefinition, new: &PromptDefinition) -> Vec<FieldDiff> {
    let fields = [
        ("title", DiffEffect::Wording),
        ("description", DiffEffect::Wording),
    ];
    let mut diffs = field_diffs("", &old.to_value(), &new.to_value(), &fields);
    let names: BTreeSet<&String> = old.arguments.keys().chain(new.arguments.keys()).collect();
    for name in names {
        let path = format!("arguments.{name}");
        let shown = |prompt: &PromptDefinition| {
            prompt.arguments.get(name).map(|argument| {
                let mut value = serde_json::json!({"required": argument.is_required});
                if let Some(fields) = value.as_object_mut() {
                    let texts = [
                        ("title", &argument.title),
                        ("description", &argument.description),
                    ];
                    for (key, text) in texts {
                        fields.extend(
                            text.clone()
                                .map(|text| (key.to_owned(), Value::String(text))),
                        );
                    }
                }
                value
            })
        };
        match (shown(old), shown(new)) {
            (Some(old), Some(new)) => {
                let fields = [
                    ("title", DiffEffect::Wording),
                    ("description", DiffEffect::Wording),
                    ("required", DiffEffect::Wider),
                ];
                diffs.extend(field_diffs(&path, &old, &new, &fields));
            }
            (old, new) => {
                // An argument less asks less; one more asks more.
                let effect = match new.is_none() {
                    true => DiffEffect::Narrower,
                    false => DiffEffect::Wider,
                };
                diffs.push(FieldDiff {
                    path,
                    effect,
                    old,
                    new,
                });
            }
        }
    }
    diffs
}

fn place_diffs(place: &str, old: &Value, new: &Value) -> Vec<FieldDiff> {
    let fields = [
        (place, DiffEffect::Wider),
        ("name", DiffEffect::Wording),
        ("title", DiffEffect::Wording),
        ("description", DiffEffect::Wording),
        ("mimeType", DiffEffect::Wider),
    ];
    field_diffs("", old, new, &fields)
}

/// The fields of two objects that differ, with what each means.
fn field_diffs(
    path: &str,
    old: &Value,
    new: &Value,
    fields: &[(&str, DiffEffect)],
) -> Vec<FieldDiff> {
    let mut diffs = Vec::new();
    for (field, effect) in fields {
        let (old, new) = (old.get(field), new.get(field));
        if old != new {
            diffs.push(FieldDiff {
                path: match path.is_empty() {
                    true => (*field).to_owned(),
                    false => format!("{path}.{field}"),
                },
                effect: *effect,
                old: old.cloned(),
                new: new.cloned(),
            });
        }
    }
    diffs
}
