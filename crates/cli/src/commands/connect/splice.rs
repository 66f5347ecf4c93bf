//! Changes one entry in another program's JSON and leaves every other byte as it is.
//!
//! The text is cut at the entry, or where it belongs; nothing is parsed and printed
//! again. A file that is not plain JSON, such as one with comments, is refused rather
//! than guessed at, and the result is read again before it counts.

use anyhow::{anyhow, bail};
use model::document::json::{JsonKind, Member, Node, Span};
use serde_json::{Value, json};

/// The text with `section.name` set to an entry, or without it. Nothing if it is so
/// already.
pub(crate) fn put(
    old: Option<&str>,
    section: &str,
    name: &str,
    entry: Option<&Value>,
) -> anyhow::Result<Option<String>> {
    let old = old.filter(|text| !text.trim().is_empty());
    let Some(old) = old else {
        let whole = entry.map(|entry| json!({ section: { name: entry } }));
        return Ok(whole.map(|whole| format!("{whole:#}\n")));
    };
    let root = read(old)?;
    let members = root
        .members()
        .ok_or_else(|| anyhow!("it is not a JSON object"))?;
    let servers = members.iter().find(|member| member.key == section);
    let new = match (servers, entry) {
        (None, None) => return Ok(None),
        (None, Some(entry)) => {
            let whole = json!({ name: entry });
            insert(old, &root, &root, section, &whole)
        }
        (Some(servers), entry) => {
            let Some(known) = servers.value.members() else {
                bail!("`{section}` in it is not an object");
            };
            let place = known.iter().position(|member| member.key == name);
            match (place.and_then(|place| known.get(place)), entry) {
                (None, None) => return Ok(None),
                (None, Some(entry)) => insert(old, &root, &servers.value, name, entry),
                (Some(member), Some(entry)) => {
                    // Compared as values, so that other white space is no change.
                    if to_value(old, &member.value)? == *entry {
                        return Ok(None);
                    }
                    let indent = line_indent(old, member.key_span.start);
                    let text = rendered(old, &root, entry, indent);
                    cut(old, member.value.span, &text)
                }
                (Some(member), None) => remove(old, &servers.value, known, member),
            }
        }
    }?;
    // The result is read again, because a wrong cut would break another program.
    check(old, &new, section, name, entry)?;
    Ok(Some(new))
}

fn read(text: &str) -> anyhow::Result<Node> {
    let (root, repeated) = model::document::json::parse(text).map_err(|fault| {
        let line = text
            .get(..fault.span.start)
            .map_or(0, |head| head.matches('\n').count())
            + 1;
        anyhow!("line {line} is not plain JSON: {}", fault.message)
    })?;
    match repeated.first() {
        None => Ok(root),
        Some(fault) => Err(anyhow!("{}", fault.message)),
    }
}

/// The whole of it as a value, under the same rules.
pub(crate) fn value(text: &str) -> anyhow::Result<Value> {
    let root = read(text)?;
    to_value(text, &root)
}

fn to_value(text: &str, node: &Node) -> anyhow::Result<Value> {
    let text = text.get(node.span.start..node.span.end);
    Ok(serde_json::from_str(text.unwrap_or_default())?)
}

/// Adds a member at the end of an object.
fn insert(
    text: &str,
    root: &Node,
    into: &Node,
    key: &str,
    value: &Value,
) -> anyhow::Result<String> {
    let key = Value::from(key);
    let members = into.members().unwrap_or_default();
    let is_one_line = !slice(text, into.span)?.contains('\n');
    match members.last() {
        Some(last) if is_one_line => {
            let at = end_of(last.value.span);
            cut(text, at, &format!(", {key}: {value}"))
        }
        Some(last) => {
            let indent = line_indent(text, last.key_span.start);
            let value = rendered(text, root, value, indent);
            cut(
                text,
                end_of(last.value.span),
                &format!(",\n{indent}{key}: {value}"),
            )
        }
        None => {
            let outer = line_indent(text, into.span.start);
            let unit = unit(text, root);
            let inner = format!("{outer}{unit}");
            let value = rendered(text, root, value, &inner);
            cut(
                text,
                into.span,
                &format!("{{\n{inner}{key}: {value}\n{outer}}}"),
            )
        }
    }
}

/// Takes a member out, with the comma that belongs to it.
fn remove(text: &str, from: &Node, members: &[Member], member: &Member) -> anyhow::Result<String> {
    let place = members.iter().position(|known| known.key == member.key);
    let place = place.unwrap_or_default();
    let before = place.checked_sub(1).and_then(|place| members.get(place));
    let after = members.get(place + 1);
    let span = match (before, after) {
        // With the comma before it, which would otherwise dangle at the end.
        (Some(before), _) => Span {
            start: before.value.span.end,
            end: member.value.span.end,
        },
        (None, Some(after)) => Span {
            start: member.key_span.start,
            end: after.key_span.start,
        },
        (None, None) => return cut(text, from.span, "{}"),
    };
    cut(text, span, "")
}

/// A value as the file's author would write it at this place.
fn rendered(text: &str, root: &Node, value: &Value, indent: &str) -> String {
    let unit = unit(text, root);
    let mut shown = String::new();
    // Two spaces a step, which become the file's own; no string holds a line break.
    for (number, line) in format!("{value:#}").lines().enumerate() {
        let inner = line.trim_start_matches(' ');
        let steps = (line.len() - inner.len()) / 2;
        if number > 0 {
            shown.push('\n');
            shown.push_str(indent);
        }
        shown.push_str(&unit.repeat(steps));
        shown.push_str(inner);
    }
    shown
}

/// One step of indentation in this file.
fn unit(text: &str, root: &Node) -> String {
    let first = root.members().and_then(<[Member]>::first);
    let indent = first.map_or("", |first| line_indent(text, first.key_span.start));
    if indent.is_empty() {
        "  ".to_owned()
    } else {
        indent.to_owned()
    }
}

/// The white space at the start of the line of a place.
fn line_indent(text: &str, place: usize) -> &str {
    let head = text.get(..place).unwrap_or_default();
    let start = head.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..).unwrap_or_default();
    let end = line.find(|letter| letter != ' ' && letter != '\t');
    line.get(..end.unwrap_or(0)).unwrap_or_default()
}

fn slice(text: &str, span: Span) -> anyhow::Result<&str> {
    let found = text.get(span.start..span.end);
    found.ok_or_else(|| anyhow!("it changed while it was read"))
}

fn end_of(span: Span) -> Span {
    Span {
        start: span.end,
        end: span.end,
    }
}

fn cut(text: &str, span: Span, with: &str) -> anyhow::Result<String> {
    slice(text, span)?;
    let mut new = text.to_owned();
    new.replace_range(span.start..span.end, with);
    Ok(new)
}

/// Reads both again: they must differ in the entry and in nothing else.
fn check(
    old: &str,
    new: &str,
    section: &str,
    name: &str,
    entry: Option<&Value>,
) -> anyhow::Result<()> {
    let (mut old, new) = (read(old)?, read(new)?);
    let found = new.get(section).and_then(|servers| servers.get(name));
    let is_set = match (found, entry) {
        (None, None) => true,
        (Some(found), Some(entry)) => {
            model::document::json::parse(&entry.to_string()).is_ok_and(|(entry, _)| entry == *found)
        }
        (None, Some(_)) | (Some(_), None) => false,
    };
    let (mut new, had_section) = (new, old.get(section).is_some());
    for tree in [&mut old, &mut new] {
        without(tree, section, name, had_section);
    }
    if !is_set || old != new {
        bail!("the change would touch more than its own entry");
    }
    Ok(())
}

fn without(root: &mut Node, section: &str, name: &str, keep_section: bool) {
    let JsonKind::Object(members) = &mut root.kind else {
        return;
    };
    if !keep_section {
        members.retain(|member| member.key != section);
    }
    for member in members.iter_mut().filter(|member| member.key == section) {
        if let JsonKind::Object(servers) = &mut member.value.kind {
            servers.retain(|server| server.key != name);
        }
    }
}
