//! Every single field of a definition flipped once, with its class and what is served.

use std::collections::BTreeSet;
use std::fs;

use model::word::Word as _;
use serde_json::{Value, json};
use upstream::definition::{ItemKind, ServerDefinition, ServerOrigin};
use upstream::pin::{
    AcceptScope, ChangeSubject, PinnedServer, SeenServer, ServedState, compare, serve,
};

use crate::cases;

/// The definitions that are flipped, as the file has them.
struct Flips {
    server: Value,
    tool: Value,
    prompt: Value,
    template: Value,
    resource: Value,
    cases: Vec<Value>,
}

fn flips() -> Flips {
    let text = fs::read_to_string(cases().join("flips.json")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let Value::Array(cases) = file["cases"].take() else {
        panic!("a list of cases")
    };
    Flips {
        server: file["server"].take(),
        tool: file["tool"].take(),
        prompt: file["prompt"].take(),
        template: file["template"].take(),
        resource: file["resource"].take(),
        cases,
    }
}

fn server(value: &Value) -> ServerDefinition {
    let text = |field: &str| value[field].as_str().unwrap_or("").to_owned();
    let origin = match value.get("url") {
        Some(url) => ServerOrigin::Url(url.as_str().unwrap().to_owned()),
        None => ServerOrigin::Command {
            program: text("command"),
            arguments: serde_json::from_value(value["arguments"].clone()).unwrap(),
            digest: value["digest"].as_str().map(str::to_owned),
        },
    };
    let instructions = value["instructions"].as_str();
    ServerDefinition::new(&text("name"), &text("version"), instructions, origin).unwrap()
}

impl Flips {
    fn seen(&self) -> SeenServer {
        let listed = [
            (ItemKind::Tool, &self.tool),
            (ItemKind::Prompt, &self.prompt),
            (ItemKind::ResourceTemplate, &self.template),
            (ItemKind::Resource, &self.resource),
        ];
        SeenServer::read(server(&self.server), listed).unwrap()
    }

    /// The definitions with one case's change.
    fn flip(&self, case: &Value) -> Flips {
        let mut flipped = Flips {
            server: self.server.clone(),
            tool: self.tool.clone(),
            prompt: self.prompt.clone(),
            template: self.template.clone(),
            resource: self.resource.clone(),
            cases: Vec::new(),
        };
        let subject = match case["of"].as_str().unwrap() {
            "server" => &mut flipped.server,
            "tool" => &mut flipped.tool,
            "prompt" => &mut flipped.prompt,
            "template" => &mut flipped.template,
            "resource" => &mut flipped.resource,
            other => panic!("there is no `{other}`"),
        };
        for (pointer, value) in case["set"].as_object().into_iter().flatten() {
            set(subject, pointer, value.clone());
        }
        for pointer in case["remove"].as_array().into_iter().flatten() {
            remove(subject, pointer.as_str().unwrap());
        }
        flipped
    }
}

fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).expect(pointer);
    parent
        .as_object_mut()
        .expect(pointer)
        .insert(key.to_owned(), new);
}

fn remove(value: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).expect(pointer);
    let removed = parent.as_object_mut().expect(pointer).shift_remove(key);
    assert!(removed.is_some(), "{pointer} is not there");
}

fn kind(of: &str) -> Option<ItemKind> {
    match of {
        "server" => None,
        "tool" => Some(ItemKind::Tool),
        "prompt" => Some(ItemKind::Prompt),
        "resource" => Some(ItemKind::Resource),
        _ => Some(ItemKind::ResourceTemplate),
    }
}

/// What is served of the flipped item, in words; of the tool for the server.
fn served(pinned: &PinnedServer, seen: &SeenServer, of: &str) -> String {
    let kind = kind(of).unwrap_or(ItemKind::Tool);
    let served = serve(pinned, Some(seen));
    let mut words = Vec::new();
    for item in served.items.iter().filter(|item| item.key.kind == kind) {
        words.push(match &item.state {
            ServedState::Callable { is_old: false, .. } => "new text".to_owned(),
            ServedState::Callable { is_old: true, .. } => "old text".to_owned(),
            ServedState::Held(_) => "held".to_owned(),
            ServedState::Blocked => "blocked".to_owned(),
            ServedState::Gone => "gone".to_owned(),
            ServedState::Refused(_) => "refused".to_owned(),
        });
    }
    words.join(", ")
}

#[test]
fn every_field_has_its_class() {
    let base = flips();
    let accepted = base.seen();
    let mut pinned = PinnedServer::unknown();
    pinned.accept(&accepted, AcceptScope::All, 1);
    let mut wrong = Vec::new();
    for case in &base.cases {
        let name = case["name"].as_str().unwrap();
        let of = case["of"].as_str().unwrap();
        let seen = base.flip(case).seen();
        let is_subject = |subject: &ChangeSubject| match subject {
            ChangeSubject::Server => of == "server",
            ChangeSubject::Item(key) => Some(key.kind) == kind(of),
        };
        let changes = compare(&pinned, &seen);
        let mut classes = Vec::new();
        for change in &changes {
            if is_subject(&change.subject) {
                classes.push(change.class.word());
            } else {
                assert_eq!(change.class.word(), "same", "{name}: {:?}", change.subject);
            }
        }
        let found = json!({"class": classes.join(", "), "served": served(&pinned, &seen, of)});
        let expected = json!({"class": case["class"], "served": case["served"]});
        if found != expected {
            wrong.push(format!("{name}: {found} and not {expected}"));
        }
        // A revert releases itself.
        assert_eq!(served(&pinned, &accepted, of), "new text", "{name}");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The cases cover every class and every field that is forwarded.
#[test]
fn no_field_is_forgotten() {
    let base = flips();
    let mut fields = BTreeSet::new();
    let mut classes = BTreeSet::new();
    for case in &base.cases {
        let of = case["of"].as_str().unwrap();
        let set = case["set"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(pointer, _)| pointer.as_str());
        let removed = case["remove"].as_array().into_iter().flatten();
        for pointer in set.chain(removed.map(|pointer| pointer.as_str().unwrap())) {
            fields.insert(format!("{of}{pointer}"));
        }
        classes.extend(
            case["class"]
                .as_str()
                .unwrap()
                .split(", ")
                .map(str::to_owned),
        );
    }
    for class in [
        "same", "narrower", "wording", "wider", "identity", "renamed", "gone", "new",
    ] {
        assert!(classes.contains(class), "{class}");
    }
    let seen = base.seen();
    for (key, item) in &seen.items {
        let of = match key.kind {
            ItemKind::Tool => "tool",
            ItemKind::Prompt => "prompt",
            ItemKind::ResourceTemplate => "template",
            ItemKind::Resource => "resource",
        };
        for field in item.definition.to_value().as_object().unwrap().keys() {
            let flipped = fields
                .iter()
                .any(|known| known.starts_with(&format!("{of}/{field}")));
            assert!(flipped, "{of}.{field} is never flipped");
        }
    }
    for field in base.server.as_object().unwrap().keys() {
        assert!(
            fields.contains(&format!("server/{field}")),
            "server.{field} is never flipped"
        );
    }
}
