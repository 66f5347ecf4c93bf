//! HTML as browsers read it: html5ever writes into an arena of ours, which can
//! count. What the text means is left to the face in JavaScript.

mod flood;
mod sink;

use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{LocalName, ParseOpts, Parser, QualName, ns, parse_document, parse_fragment};
use serde_json::{Map, Value, json};

use crate::compute::Turn;
use crate::message::{PowerFault, PowerReply, PowerRequest};
use crate::parser::html::flood::Flood;
use crate::parser::html::sink::{Arena, NodeKind, ROOT, Sink};
use crate::parser::{Meter, NODES_MAX, ParseError, TREE_DEPTH_MAX, text};

const HELPER: &str = "safety.parser.html";

/// Text handed to the parser in one go. Between two pieces we look at what has
/// grown, so this is how far a bound can be overshot.
const PIECE_BYTES: usize = 1024;
/// Pieces between two questions whether to go on.
const PIECES_AT_ONCE: usize = 64;

/// A node in the list is an array that starts with the index of its parent,
/// or -1. Then comes the name of an element (and its attributes, if any), or
/// one of these numbers and a text.
const TEXT: u8 = 0;
const COMMENT: u8 = 1;
const DOCTYPE: u8 = 2;

/// Parses `arguments.text` as a document, or as a fragment inside the element
/// that `arguments.context` names, into `{nodes}`.
///
/// # Errors
/// `missing-input`, `too-deep`, `too-large`; HTML itself is never wrong.
pub fn html(ask: &PowerRequest, turn: &Turn) -> Result<PowerReply, PowerFault> {
    let text = text(ask, HELPER)?;
    let context = ask.arguments.get("context").and_then(Value::as_str);
    let nodes = parse(text, context, turn).map_err(|error| error.into_fault(HELPER))?;
    Ok(PowerReply {
        value: json!({ "nodes": nodes }),
        bytes: Vec::new(),
    })
}

pub(crate) fn parse(
    text: &str,
    context: Option<&str>,
    turn: &Turn,
) -> Result<Vec<Value>, ParseError> {
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts {
            // Nothing runs scripts here, so `noscript` is what is shown.
            scripting_enabled: false,
            ..TreeBuilderOpts::default()
        },
        ..ParseOpts::default()
    };
    let parser = match context {
        None => parse_document(Sink::default(), options),
        Some(tag) => {
            let name = QualName::new(None, ns!(html), LocalName::from(tag.to_ascii_lowercase()));
            parse_fragment(Sink::default(), options, name, Vec::new(), false)
        }
    };
    let arena = feed(parser, text, turn)?;
    let start = match context {
        None => ROOT,
        // A fragment comes wrapped in an `html` element that the text does not have.
        Some(_) => arena
            .children(ROOT)
            .iter()
            .copied()
            .find(|child| matches!(arena.kind(*child), Some(NodeKind::Element(..))))
            .unwrap_or(ROOT),
    };
    flatten(&arena, start, turn)
}

/// A node of the list, for code of ours.
#[derive(Clone, Debug)]
pub(crate) enum HtmlNode<'a> {
    Element {
        parent: Option<usize>,
        name: &'a str,
        attributes: Option<&'a Map<String, Value>>,
    },
    /// A text; empty for what is neither text nor element, so that places in the list stay.
    Text {
        parent: Option<usize>,
        text: &'a str,
    },
}

impl<'a> HtmlNode<'a> {
    pub(crate) fn parent(&self) -> Option<usize> {
        match self {
            HtmlNode::Element { parent, .. } | HtmlNode::Text { parent, .. } => *parent,
        }
    }

    pub(crate) fn name(&self) -> Option<&'a str> {
        match self {
            HtmlNode::Element { name, .. } => Some(name),
            HtmlNode::Text { .. } => None,
        }
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&'a str> {
        match self {
            HtmlNode::Element { attributes, .. } => (*attributes)?.get(name)?.as_str(),
            HtmlNode::Text { .. } => None,
        }
    }
}

/// One line of the list.
pub(crate) fn node(line: &Value) -> Option<HtmlNode<'_>> {
    let line = line.as_array()?;
    let parent = line.first()?.as_i64()?;
    let parent = usize::try_from(parent).ok();
    Some(match line.get(1)? {
        Value::String(name) => HtmlNode::Element {
            parent,
            name,
            attributes: line.get(2).and_then(Value::as_object),
        },
        kind => HtmlNode::Text {
            parent,
            text: match kind.as_u64() == Some(u64::from(TEXT)) {
                true => line.get(2).and_then(Value::as_str).unwrap_or_default(),
                false => "",
            },
        },
    })
}

fn feed(mut parser: Parser<Sink>, text: &str, turn: &Turn) -> Result<Arena, ParseError> {
    let mut flood = Flood::new();
    let mut rest = text;
    let mut pieces_count = 0_usize;
    let mut changes_count = parser.tokenizer.sink.sink.changes_count();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(piece_bytes(rest));
        rest = tail;
        // In lots: asking takes longer than parsing a short piece.
        if pieces_count.is_multiple_of(PIECES_AT_ONCE) {
            turn.check()?;
        }
        pieces_count += 1;
        // Before the parser sees it: afterwards it would be too late.
        flood.foresee(piece)?;
        parser.process(StrTendril::from_slice(piece));
        let sink = &parser.tokenizer.sink.sink;
        if sink.changes_count() != changes_count {
            changes_count = sink.changes_count();
            flood.resume();
        }
        if sink.depth_max() > TREE_DEPTH_MAX {
            return Err(ParseError::TooDeep(TREE_DEPTH_MAX));
        }
        if sink.nodes_count() > NODES_MAX {
            return Err(ParseError::TooLarge("nodes", NODES_MAX));
        }
    }
    Ok(parser.finish())
}

/// How much to hand over next: up to the next `<`, or with the next `>`.
fn piece_bytes(text: &str) -> usize {
    // A first character that is longer than the piece is handed over whole.
    let most = match text.floor_char_boundary(PIECE_BYTES) {
        0 => text.len(),
        most => most,
    };
    let mut marks = text.bytes().enumerate().take(most);
    let cut = marks.find_map(|(index, byte)| match byte {
        b'<' if index > 0 => Some(index),
        b'>' => Some(index + 1),
        _ => None,
    });
    cut.unwrap_or(most)
}

fn flatten(arena: &Arena, start: usize, turn: &Turn) -> Result<Vec<Value>, ParseError> {
    let mut meter = Meter::new(turn);
    let mut nodes = Vec::new();
    let children = arena.children(start).iter().rev();
    let mut open: Vec<(usize, i64, usize)> = children.map(|child| (*child, -1, 1)).collect();
    while let Some((index, parent, depth)) = open.pop() {
        // Again here: html5ever moves branches, and the depth in the arena is
        // that of the insertion.
        if depth > TREE_DEPTH_MAX {
            return Err(ParseError::TooDeep(TREE_DEPTH_MAX));
        }
        let own = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
        match arena.kind(index) {
            Some(NodeKind::Element(name, attributes)) => {
                meter.node(name.local.len())?;
                let mut attrs = Map::new();
                for (name, value) in attributes {
                    meter.bytes(name.len() + value.len())?;
                    attrs.insert(name.clone(), Value::from(&**value));
                }
                nodes.push(match attrs.is_empty() {
                    true => json!([parent, &*name.local]),
                    false => json!([parent, &*name.local, attrs]),
                });
            }
            Some(NodeKind::Text(text)) => {
                meter.node(text.len())?;
                nodes.push(json!([parent, TEXT, &**text]));
            }
            Some(NodeKind::Comment(text)) => {
                meter.node(text.len())?;
                nodes.push(json!([parent, COMMENT, &**text]));
            }
            Some(NodeKind::Doctype(name)) => {
                meter.node(name.len())?;
                nodes.push(json!([parent, DOCTYPE, &**name]));
            }
            Some(NodeKind::Document) | None => continue,
        }
        let children = arena.children(index).iter().rev();
        open.extend(children.map(|child| (*child, own, depth + 1)));
    }
    Ok(nodes)
}
