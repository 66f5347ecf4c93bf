//! YAML as plain data. The parser gives events; here they become values, with
//! the scalars of YAML 1.1, no tags but the basic ones, and every value counted,
//! those that come from an alias too.

mod scalar;

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value, json};

use crate::compute::Turn;
use crate::message::{PowerFault, PowerReply, PowerRequest};
use crate::parser::{Meter, ParseError, YAML_ALIASES_MAX, YAML_DEPTH_MAX, text};

const HELPER: &str = "safety.parser.yaml";

/// Parses the one document in `arguments.text` into `{value, odd}`. `odd` lists
/// the numbers JSON has no word for: `[path, "Infinity" | "-Infinity" | "NaN"]`;
/// in `value` they are null.
///
/// # Errors
/// `missing-input`; `parse-failed`, also for tags that would make objects;
/// `too-deep`, `too-large`.
pub fn yaml(ask: &PowerRequest, turn: &Turn) -> Result<PowerReply, PowerFault> {
    let text = text(ask, HELPER)?;
    let node = parse(text, turn).map_err(|error| error.into_fault(HELPER))?;
    let mut odd = Vec::new();
    let value = node.into_json(&mut Vec::new(), &mut odd);
    Ok(PowerReply {
        value: json!({ "value": value, "odd": odd }),
        bytes: Vec::new(),
    })
}

/// A value, while it is built.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum YamlNode {
    /// What JSON can say.
    Plain(Value),
    /// What it cannot.
    Odd(&'static str),
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

impl YamlNode {
    /// The depth is bounded, so the recursion is.
    fn into_json(self, path: &mut Vec<Value>, odd: &mut Vec<Value>) -> Value {
        match self {
            YamlNode::Plain(value) => value,
            YamlNode::Odd(word) => {
                odd.push(json!([path, word]));
                Value::Null
            }
            YamlNode::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    path.push(Value::from(index));
                    list.push(item.into_json(path, odd));
                    path.pop();
                }
                Value::Array(list)
            }
            YamlNode::Map(pairs) => {
                let mut map = Map::new();
                for (key, item) in pairs {
                    path.push(Value::from(key.as_str()));
                    let item = item.into_json(path, odd);
                    path.pop();
                    map.insert(key, item);
                }
                Value::Object(map)
            }
        }
    }

    /// Counts a copy of this value, and says how deep it is.
    fn count(&self, meter: &mut Meter) -> Result<usize, ParseError> {
        match self {
            YamlNode::Plain(value) => {
                meter.node(value.as_str().map_or(0, str::len))?;
                Ok(0)
            }
            YamlNode::Odd(_) => meter.node(0).map(|()| 0),
            YamlNode::List(items) => {
                meter.node(0)?;
                let mut depth = 0;
                for item in items {
                    depth = depth.max(item.count(meter)?);
                }
                Ok(depth + 1)
            }
            YamlNode::Map(pairs) => {
                meter.node(0)?;
                let mut depth = 0;
                for (key, item) in pairs {
                    meter.bytes(key.len())?;
                    depth = depth.max(item.count(meter)?);
                }
                Ok(depth + 1)
            }
        }
    }
}

/// A collection that is not finished.
#[derive(Debug)]
struct Frame {
    anchor: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    List(Vec<YamlNode>),
    Map {
        pairs: Vec<(String, YamlNode)>,
        /// Where each key lies, for a later one takes its place.
        places: HashMap<String, usize>,
        /// The key whose value is still to come.
        key: Option<Key>,
        merged: Vec<YamlNode>,
    },
}

#[derive(Debug)]
enum Key {
    Name(String),
    /// `<<`
    Merge,
}

#[derive(Debug, Default)]
struct Builder {
    frames: Vec<Frame>,
    anchors: HashMap<usize, YamlNode>,
    aliases_count: usize,
    meter: Meter,
    root: Option<YamlNode>,
    documents_count: usize,
}

fn parse(text: &str, turn: &Turn) -> Result<YamlNode, ParseError> {
    let mut builder = Builder {
        meter: Meter::new(turn),
        ..Builder::default()
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| match error.info() {
            // The parser's own bound, which it meets while it looks ahead.
            "recursion limit exceeded" => ParseError::TooDeep(YAML_DEPTH_MAX),
            info => malformed(info, error.marker().line()),
        })?;
        builder.take(event, span.start.line())?;
    }
    Ok(builder.root.unwrap_or(YamlNode::Plain(Value::Null)))
}

fn malformed(what: &str, line: usize) -> ParseError {
    ParseError::Malformed(format!("{what}, in line {line}"))
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), ParseError> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents_count += 1;
                match self.documents_count > 1 {
                    // A second document would be silently lost, or taken for the first.
                    true => Err(malformed("there is more than one document", line)),
                    false => Ok(()),
                }
            }
            Event::Alias(anchor) => self.alias(anchor, line),
            Event::Scalar(text, style, anchor, tag) => {
                self.meter.node(text.len())?;
                self.scalar(&text, style, anchor, tag.as_deref(), line)
            }
            Event::SequenceStart(anchor, tag) => {
                let name = basic(tag.as_deref(), line)?;
                if !matches!(name, None | Some("seq")) {
                    return Err(unknown(tag.as_deref(), line));
                }
                self.open(anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let name = basic(tag.as_deref(), line)?;
                if !matches!(name, None | Some("map" | "set")) {
                    return Err(unknown(tag.as_deref(), line));
                }
                let content = Content::Map {
                    pairs: Vec::new(),
                    places: HashMap::new(),
                    key: None,
                    merged: Vec::new(),
                };
                self.open(anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(line),
        }
    }

    fn open(&mut self, anchor: usize, content: Content) -> Result<(), ParseError> {
        self.meter.node(0)?;
        // Before it is opened: what comes out is nested JSON, which has a bound of its own.
        if self.frames.len() >= YAML_DEPTH_MAX {
            return Err(ParseError::TooDeep(YAML_DEPTH_MAX));
        }
        self.frames.push(Frame { anchor, content });
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), ParseError> {
        let Some(frame) = self.frames.pop() else {
            return Err(malformed("a collection ends that never began", line));
        };
        let node = match frame.content {
            Content::List(items) => YamlNode::List(items),
            Content::Map {
                mut pairs,
                mut places,
                merged,
                ..
            } => {
                // Last, because a key of the mapping itself wins over one that is merged.
                for node in merged {
                    merge(node, &mut pairs, &mut places, line)?;
                }
                YamlNode::Map(pairs)
            }
        };
        self.put(node, frame.anchor, line)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        line: usize,
    ) -> Result<(), ParseError> {
        let name = basic(tag, line)?;
        let is_plain = style == ScalarStyle::Plain;
        if let Some(key) = self.key_slot() {
            let is_merge = is_plain && name.is_none() && text == "<<";
            *key = Some(match is_merge {
                true => Key::Merge,
                false => Key::Name(scalar::key(text, is_plain, name)),
            });
            if anchor != 0 {
                let node = YamlNode::Plain(Value::from(text));
                self.anchors.insert(anchor, node);
            }
            return Ok(());
        }
        let node = match (name, is_plain) {
            (None, true) => scalar::resolve(text),
            (None | Some("str"), _) => YamlNode::Plain(Value::from(text)),
            (Some(name), _) => scalar::tagged(name, text)
                .ok_or_else(|| malformed(&format!("`{text}` is no `{name}`"), line))?,
        };
        self.put(node, anchor, line)
    }

    /// The place for a key, if a key is what comes next.
    fn key_slot(&mut self) -> Option<&mut Option<Key>> {
        match self.frames.last_mut().map(|frame| &mut frame.content) {
            Some(Content::Map { key, .. }) if key.is_none() => Some(key),
            Some(Content::Map { .. } | Content::List(_)) | None => None,
        }
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), ParseError> {
        self.aliases_count += 1;
        if self.aliases_count > YAML_ALIASES_MAX {
            return Err(ParseError::TooLarge("aliases", YAML_ALIASES_MAX));
        }
        // An anchor is known when its value is finished, so an alias
        // inside it finds nothing.
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(malformed("an alias to what contains it", line));
        };
        // Attack: billion-laughs. What an alias stands for is counted before
        // it is copied.
        let depth = node.count(&mut self.meter)?;
        // An alias can make a shallow text deep.
        if self.frames.len() + depth > YAML_DEPTH_MAX {
            return Err(ParseError::TooDeep(YAML_DEPTH_MAX));
        }
        let node = node.clone();
        match (self.key_slot(), &node) {
            (Some(key), YamlNode::Plain(value)) => {
                *key = Some(Key::Name(scalar::key_of(value)));
                Ok(())
            }
            (Some(_), _) => Err(malformed("a key must be a scalar", line)),
            (None, _) => self.put(node, 0, line),
        }
    }

    /// A finished value goes where the innermost open collection wants it.
    fn put(&mut self, node: YamlNode, anchor: usize, line: usize) -> Result<(), ParseError> {
        if anchor != 0 {
            // The copy kept for aliases is memory, so it counts as well.
            node.count(&mut self.meter)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.frames.last_mut().map(|frame| &mut frame.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map {
                pairs,
                places,
                key,
                merged,
            }) => match key.take() {
                Some(Key::Merge) => merged.push(node),
                Some(Key::Name(name)) => set(name, node, pairs, places),
                None => return Err(malformed("a key must be a scalar", line)),
            },
        }
        Ok(())
    }
}

fn set(
    name: String,
    node: YamlNode,
    pairs: &mut Vec<(String, YamlNode)>,
    places: &mut HashMap<String, usize>,
) {
    match places.get(&name).and_then(|place| pairs.get_mut(*place)) {
        // The later one counts, as in other loaders, at the place of the first.
        Some((_, known)) => *known = node,
        None => {
            places.insert(name.clone(), pairs.len());
            pairs.push((name, node));
        }
    }
}

/// `<<: *defaults`, or a list of such: what is not there yet is added.
fn merge(
    node: YamlNode,
    pairs: &mut Vec<(String, YamlNode)>,
    places: &mut HashMap<String, usize>,
    line: usize,
) -> Result<(), ParseError> {
    let maps = match node {
        YamlNode::Map(_) => vec![node],
        YamlNode::List(items) => items,
        YamlNode::Plain(_) | YamlNode::Odd(_) => {
            return Err(malformed("only a mapping can be merged", line));
        }
    };
    for map in maps {
        let YamlNode::Map(added) = map else {
            return Err(malformed("only a mapping can be merged", line));
        };
        for (name, node) in added {
            if !places.contains_key(&name) {
                set(name, node, pairs, places);
            }
        }
    }
    Ok(())
}

/// The name of a tag of the basic set.
fn basic(tag: Option<&Tag>, line: usize) -> Result<Option<&str>, ParseError> {
    const NAMES: &[&str] = &[
        "str",
        "int",
        "float",
        "bool",
        "null",
        "seq",
        "map",
        "set",
        "binary",
        "timestamp",
    ];
    match tag {
        None => Ok(None),
        Some(tag) if tag.handle == "!" && tag.suffix.is_empty() => Ok(Some("str")),
        Some(tag) if tag.is_yaml_core_schema() && NAMES.contains(&tag.suffix.as_str()) => {
            Ok(Some(tag.suffix.as_str()))
        }
        // Attack: yaml-tag. In other loaders such a tag calls a constructor.
        Some(_) => Err(unknown(tag, line)),
    }
}

fn unknown(tag: Option<&Tag>, line: usize) -> ParseError {
    let name = tag.map(|tag| format!("{}{}", tag.handle, tag.suffix));
    malformed(
        &format!("the tag `{}` is not allowed here", name.unwrap_or_default()),
        line,
    )
}
