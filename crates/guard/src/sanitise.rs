//! Results of scripts, cut to size and cleaned.
//!
//! Results keep their shape: parts that are too deep, too long or too many are cut,
//! with a warning. Messages and stacks go through `text`, which removes details of the
//! machine. Secrets are masked first, by `mask`.
//!
//! Values arrive as JSON. Dates are ISO text, maps objects, sets and typed arrays
//! arrays by then; functions, symbols and accessors are gone.

mod scrub;

use serde_json::{Map, Value};

pub use scrub::text;

/// Warnings kept for one value; the rest are counted.
const WARNINGS_MAX: usize = 20;
/// Places shown in a warning are cut to this many characters.
const PLACE_CHARS_MAX: usize = 120;
/// No limit of depth goes beyond this, because cutting recurses.
pub const DEPTH_CAP: usize = 128;

/// How much of a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Containers inside each other.
    pub depth_max: usize,
    /// Properties of all objects together.
    pub properties_max: usize,
    /// Characters of one string.
    pub string_chars_max: usize,
    /// Items of one array.
    pub array_items_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth_max: 20,
            properties_max: 10_000,
            string_chars_max: 10_000,
            array_items_max: 1_000,
        }
    }
}

/// A value cut to size.
#[derive(Clone, Debug, PartialEq)]
pub struct Sanitised {
    /// The rest.
    pub value: Value,
    /// Warnings about cuts, each with its place.
    pub warnings: Vec<String>,
}

/// Cuts a value to size.
#[must_use]
pub fn value(value: Value, limits: &Limits) -> Sanitised {
    let mut cutter = Cutter {
        limits: Limits {
            depth_max: limits.depth_max.min(DEPTH_CAP),
            ..*limits
        },
        properties_left: limits.properties_max,
        properties_dropped: 0,
        place: String::new(),
        warnings: Vec::new(),
        warnings_left_out: 0,
    };
    let value = cutter.cut(value, 0);
    Sanitised {
        value,
        warnings: cutter.finish(),
    }
}

struct Cutter {
    limits: Limits,
    properties_left: usize,
    properties_dropped: usize,
    place: String,
    warnings: Vec<String>,
    warnings_left_out: usize,
}

impl Cutter {
    fn cut(&mut self, value: Value, depth: usize) -> Value {
        match value {
            Value::String(text) => Value::String(self.string(text)),
            Value::Array(_) | Value::Object(_) if depth >= self.limits.depth_max => {
                let most = self.limits.depth_max;
                self.warn(&format!("deeper than {most} levels, left out"));
                Value::String(String::from("[too deep]"))
            }
            Value::Array(items) => Value::Array(self.array(items, depth)),
            Value::Object(object) => self.object(object, depth),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
        }
    }

    fn string(&mut self, text: String) -> String {
        let most = self.limits.string_chars_max;
        if text.len() <= most {
            return text;
        }
        let Some((end, _)) = text.char_indices().nth(most) else {
            return text;
        };
        let count = text.get(end..).map_or(0, |rest| rest.chars().count());
        self.warn(&format!("text cut, {count} characters left out"));
        let mut kept = String::from(text.get(..end).unwrap_or(""));
        kept.push_str(" … [");
        kept.push_str(&model::text::count(count, "more character"));
        kept.push(']');
        kept
    }

    fn array(&mut self, mut items: Vec<Value>, depth: usize) -> Vec<Value> {
        let most = self.limits.array_items_max;
        if items.len() > most {
            let count = items.len() - most;
            self.warn(&format!(
                "list cut, {count} of {} items left out",
                items.len()
            ));
            items.truncate(most);
        }
        let mut kept = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let back = self.enter(&format!("[{index}]"));
            kept.push(self.cut(item, depth + 1));
            self.place.truncate(back);
        }
        kept
    }

    fn object(&mut self, object: Map<String, Value>, depth: usize) -> Value {
        if is_buffer(&object) {
            return Value::String(String::from("[Buffer]"));
        }
        let is_error = is_error(&object);
        let mut kept = Map::new();
        for (key, item) in object {
            // Attack: code that copies this into an object of its own must not be
            // given a prototype or a constructor.
            if matches!(key.as_str(), "__proto__" | "constructor" | "prototype") {
                self.warn(&format!("the key `{key}` was left out"));
                continue;
            }
            // A stack reveals the machine and does not help with the error.
            if is_error && !matches!(key.as_str(), "name" | "message" | "code") {
                continue;
            }
            if self.properties_left == 0 {
                self.properties_dropped += 1;
                continue;
            }
            self.properties_left -= 1;
            let back = self.enter(&format!(".{key}"));
            let item = self.cut(item, depth + 1);
            self.place.truncate(back);
            kept.insert(key, item);
        }
        Value::Object(kept)
    }

    /// Goes down one step. Returns the length to restore.
    fn enter(&mut self, step: &str) -> usize {
        let back = self.place.len();
        // A longer place would not be shown.
        if back <= PLACE_CHARS_MAX * 4 {
            self.place.push_str(step);
        }
        back
    }

    fn warn(&mut self, what: &str) {
        if self.warnings.len() >= WARNINGS_MAX {
            self.warnings_left_out += 1;
            return;
        }
        let place = model::text::elided(&self.place, PLACE_CHARS_MAX);
        self.warnings.push(format!("result{place}: {what}"));
    }

    fn finish(mut self) -> Vec<String> {
        if self.properties_dropped > 0 {
            let most = self.limits.properties_max;
            let dropped = self.properties_dropped;
            self.warnings.push(format!(
                "result: more than {most} properties, {dropped} left out"
            ));
        }
        if self.warnings_left_out > 0 {
            let count = self.warnings_left_out;
            self.warnings.push(format!("result: {count} more cuts"));
        }
        self.warnings
    }
}

/// The JSON form of a Node buffer.
fn is_buffer(object: &Map<String, Value>) -> bool {
    object.len() == 2
        && object.get("type").and_then(Value::as_str) == Some("Buffer")
        && object.get("data").is_some_and(Value::is_array)
}

/// An error that was turned into data with all it has.
fn is_error(object: &Map<String, Value>) -> bool {
    let is_text = |key: &str| object.get(key).is_some_and(Value::is_string);
    is_text("message") && is_text("stack")
}

#[cfg(test)]
mod tests;
