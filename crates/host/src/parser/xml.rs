//! XML without a DOCTYPE, so without entities of its own making: a document can
//! neither grow nor reach out while it is read.

use std::collections::HashSet;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion, escape};
use serde_json::{Map, Value, json};

use crate::compute::Turn;
use crate::message::{PowerFault, PowerReply, PowerRequest};
use crate::parser::{Meter, ParseError, TREE_DEPTH_MAX, text};

const HELPER: &str = "safety.parser.xml";

/// Parses `arguments.text` into `{nodes}`: one `[parent, tag, attrs, text]` for
/// each element, the root first, with -1 as its parent.
///
/// # Errors
/// `missing-input`; `parse-failed`, also for any DOCTYPE; `too-deep`,
/// `too-large`.
pub fn xml(ask: &PowerRequest, turn: &Turn) -> Result<PowerReply, PowerFault> {
    let text = text(ask, HELPER)?;
    let nodes = parse(text, turn).map_err(|error| error.into_fault(HELPER))?;
    Ok(PowerReply {
        value: json!({ "nodes": nodes }),
        bytes: Vec::new(),
    })
}

#[derive(Debug)]
struct Element {
    parent: i64,
    tag: String,
    attrs: Map<String, Value>,
    text: String,
}

#[derive(Debug, Default)]
struct Tree {
    elements: Vec<Element>,
    /// Indexes of the elements that are not closed yet.
    open: Vec<usize>,
    meter: Meter,
}

fn parse(text: &str, turn: &Turn) -> Result<Vec<Value>, ParseError> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let config = reader.config_mut();
    config.check_end_names = true;
    config.check_comments = true;
    let mut tree = Tree {
        meter: Meter::new(turn),
        ..Tree::default()
    };
    loop {
        let place = reader.buffer_position();
        let event = reader
            .read_event()
            .map_err(|error| malformed(&format!("{error}"), reader.error_position()))?;
        let is_end = matches!(event, Event::Eof);
        tree.take(event, place)?;
        if is_end {
            break;
        }
    }
    if !tree.open.is_empty() {
        return Err(malformed(
            "an element is not closed",
            reader.buffer_position(),
        ));
    }
    if tree.elements.is_empty() {
        return Err(malformed(
            "there is no root element",
            reader.buffer_position(),
        ));
    }
    Ok(tree.elements.into_iter().map(wire).collect())
}

fn wire(element: Element) -> Value {
    let Element {
        parent,
        tag,
        attrs,
        text,
    } = element;
    json!([parent, tag, attrs, text.trim()])
}

fn malformed(what: &str, place: u64) -> ParseError {
    ParseError::Malformed(format!("{what}, at byte {place}"))
}

impl Tree {
    fn take(&mut self, event: Event<'_>, place: u64) -> Result<(), ParseError> {
        match event {
            Event::Start(start) => self.start(&start, place),
            Event::Empty(start) => {
                self.start(&start, place)?;
                // The crate reports no end for an empty element.
                self.open.pop();
                Ok(())
            }
            Event::End(_) => {
                self.open.pop();
                Ok(())
            }
            Event::Text(text) => self.text(&text.xml10_content(), place),
            Event::CData(text) if self.open.is_empty() => Err(malformed(
                &format!("`{}` outside the root", &*text.xml10_content()),
                place,
            )),
            Event::CData(text) => self.text(&text.xml10_content(), place),
            Event::GeneralRef(reference) => {
                let name = reference.xml10_content();
                let letter = reference
                    .resolve_char_ref()
                    .map_err(|error| malformed(&format!("{error}"), place))?;
                match (letter, escape::resolve_xml_entity(&name)) {
                    (Some(letter), _) => self.text(letter.encode_utf8(&mut [0; 4]), place),
                    (None, Some(text)) => self.text(text, place),
                    // Only the five of the standard: others would need a DTD.
                    (None, None) => Err(malformed(&format!("unknown entity `{name}`"), place)),
                }
            }
            // Attack: billion-laughs, external-entity. Without a DTD there is
            // nothing to expand and nothing to fetch.
            Event::DocType(_) => Err(malformed("a DOCTYPE is not allowed", place)),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Eof => Ok(()),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, place: u64) -> Result<(), ParseError> {
        // A second root would be a document that other readers refuse.
        if self.open.is_empty() && !self.elements.is_empty() {
            return Err(malformed("there is more than one root element", place));
        }
        if self.open.len() >= TREE_DEPTH_MAX {
            return Err(ParseError::TooDeep(TREE_DEPTH_MAX));
        }
        let tag = start.name().0;
        if !is_name(tag) {
            return Err(malformed(&format!("`{tag}` is no name"), place));
        }
        self.meter.node(tag.len())?;
        let attrs = self.attrs(start, place)?;
        let parent = self
            .open
            .last()
            .and_then(|index| i64::try_from(*index).ok());
        self.open.push(self.elements.len());
        self.elements.push(Element {
            parent: parent.unwrap_or(-1),
            tag: tag.to_owned(),
            attrs,
            text: String::new(),
        });
        Ok(())
    }

    fn attrs(
        &mut self,
        start: &BytesStart<'_>,
        place: u64,
    ) -> Result<Map<String, Value>, ParseError> {
        let mut attrs = Map::new();
        let mut known = HashSet::new();
        // Attack: attribute-flood. The crate's own search for duplicates looks
        // at every earlier one.
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| malformed(&format!("{error}"), place))?;
            let name = attribute.key.0;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| malformed(&format!("{error}"), place))?;
            if value.contains('<') && attribute.value.contains('<') {
                return Err(malformed(&format!("`<` in the attribute `{name}`"), place));
            }
            if !is_name(name) || !known.insert(name.to_owned()) {
                return Err(malformed(
                    &format!("the attribute `{name}` is wrong or twice there"),
                    place,
                ));
            }
            self.meter.node(name.len() + value.len())?;
            attrs.insert(name.to_owned(), Value::from(value.into_owned()));
        }
        Ok(attrs)
    }

    fn text(&mut self, text: &str, place: u64) -> Result<(), ParseError> {
        let Some(element) = self
            .open
            .last()
            .and_then(|index| self.elements.get_mut(*index))
        else {
            return match text.trim().is_empty() {
                true => Ok(()),
                false => Err(malformed("text outside the root element", place)),
            };
        };
        self.meter.bytes(text.len())?;
        element.text.push_str(text);
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let starts = |letter: char| letter.is_alphabetic() || matches!(letter, '_' | ':');
    name.chars().next().is_some_and(starts)
        && !name.contains(|letter: char| {
            letter.is_whitespace() || "<>&'\"=/;,!?()[]{}*+".contains(letter)
        })
}
