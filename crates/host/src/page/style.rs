//! The styles of a page, as far as they can hide something: rules of selectors by element,
//! class and id, one inside the other. The more specific rule wins, then the later.

use std::rc::Rc;

use crate::page::hidden::is_nothing;
use crate::page::{PAGE_STYLE_BYTES_MAX, PAGE_STYLE_RULES_MAX};
use crate::parser::html::HtmlNode;

/// The rules of a page.
#[derive(Debug, Default)]
pub(super) struct Styles {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// From the outermost element to the one it is about.
    selector: Vec<Compound>,
    specificity: usize,
    /// Shared by all selectors of one body.
    says: Rc<Ruled>,
}

/// `name.class#id`, each part of it optional.
#[derive(Debug, Default)]
struct Compound {
    name: Option<String>,
    classes: Vec<String>,
    id: Option<String>,
}

/// What rules say about an element.
#[derive(Clone, Debug, Default)]
pub(super) struct Ruled {
    /// Nothing if they do not say.
    pub(super) hides: Option<bool>,
    pub(super) text: Option<Rc<str>>,
    pub(super) background: Option<Rc<str>>,
}

/// `property: value` by property, in lower case; the last of a kind counts.
#[derive(Debug, Default)]
pub(super) struct Declarations(Vec<(String, String)>);

impl Declarations {
    pub(super) fn read(text: &str) -> Declarations {
        let pairs = text.split(';').filter_map(|part| part.split_once(':'));
        let clean = |(property, value): (&str, &str)| {
            let value = value.trim().to_ascii_lowercase();
            let value = value.trim_end_matches("!important").trim().to_owned();
            (property.trim().to_ascii_lowercase(), value)
        };
        Declarations(pairs.map(clean).collect())
    }

    fn get(&self, property: &str) -> Option<&str> {
        let mut pairs = self.0.iter().rev();
        let found = pairs.find(|(known, _)| known == property);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn text_colour(&self) -> Option<&str> {
        self.get("color")
    }

    pub(super) fn background(&self) -> Option<&str> {
        self.get("background-color")
            .or_else(|| self.get("background"))
    }

    fn ruled(&self) -> Ruled {
        Ruled {
            hides: self.hides(),
            text: self.text_colour().map(Rc::from),
            background: self.background().map(Rc::from),
        }
    }

    /// Whether they hide what they are about; nothing if they do not say.
    pub(super) fn hides(&self) -> Option<bool> {
        let is = |property: &str, test: &dyn Fn(&str) -> bool| self.get(property).is_some_and(test);
        let far = |value: &str| pixels(value).is_some_and(|pixels| pixels <= FAR_PIXELS);
        let is_cut = is("overflow", &|value| value == "hidden")
            && (is("height", &tiny) || is("width", &tiny) || is("max-height", &tiny));
        let is_outside = is("position", &|value| matches!(value, "absolute" | "fixed"))
            && (is("left", &far) || is("top", &far) || is("right", &far) || is("bottom", &far));
        let is_hidden = is("display", &|value| value == "none")
            || is("visibility", &|value| {
                matches!(value, "hidden" | "collapse")
            })
            || is("content-visibility", &|value| value == "hidden")
            || is("opacity", &faint)
            || is("font-size", &tiny)
            || is("text-indent", &far)
            || is("clip", &|value| {
                value.starts_with("rect(") && value.matches('0').count() >= 3
            })
            || is("clip-path", &|value| {
                value.starts_with("inset(") && (value.contains("100%") || value.contains("50%"))
                    || value.starts_with("circle(0")
            })
            || is("transform", &|value| {
                value.contains("scale(0)") || value.contains("scale(0,")
            })
            || is_cut
            || is_outside;
        let shows = is("display", &|value| value != "none")
            || is("visibility", &|value| value == "visible");
        match (is_hidden, shows) {
            // Both: then one of them hides, and what may be hidden is left out.
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

/// Left of or above everything.
const FAR_PIXELS: f64 = -200.0;

fn pixels(value: &str) -> Option<f64> {
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    number.parse().ok()
}

fn tiny(value: &str) -> bool {
    is_nothing(value) || (value.ends_with("px") && pixels(value).is_some_and(|size| size <= 1.0))
}

fn faint(value: &str) -> bool {
    let scale = if value.ends_with('%') { 100.0 } else { 1.0 };
    pixels(value).is_some_and(|opacity| opacity / scale < 0.05)
}

impl Styles {
    pub(super) fn read(nodes: &[HtmlNode<'_>]) -> Styles {
        let mut styles = Styles::default();
        let mut bytes_left = PAGE_STYLE_BYTES_MAX;
        for node in nodes {
            let HtmlNode::Text { parent, text } = node else {
                continue;
            };
            let parent = parent.and_then(|index| nodes.get(index));
            if parent.and_then(HtmlNode::name) == Some("style") {
                let end = text.floor_char_boundary(bytes_left);
                let text = text.get(..end).unwrap_or_default();
                bytes_left -= text.len();
                styles.sheet(&without_comments(text));
            }
        }
        styles
    }

    /// What the rules say about the last element of a path.
    pub(super) fn of(&self, path: &[&HtmlNode<'_>]) -> Ruled {
        let mut ruled = Ruled::default();
        let mut strengths = [0; 3];
        for rule in self.rules.iter().filter(|rule| rule.fits(path)) {
            let says = &rule.says;
            let mut wins = |kind: usize, says: bool| {
                let strength = strengths.get_mut(kind).filter(|_| says);
                strength.is_some_and(|strength| {
                    let is_won = rule.specificity >= *strength;
                    if is_won {
                        *strength = rule.specificity;
                    }
                    is_won
                })
            };
            if wins(0, says.hides.is_some()) {
                ruled.hides = says.hides;
            }
            if wins(1, says.text.is_some()) {
                ruled.text.clone_from(&says.text);
            }
            if wins(2, says.background.is_some()) {
                ruled.background.clone_from(&says.background);
            }
        }
        ruled
    }

    /// Reads a sheet from front to back, each byte once.
    fn sheet(&mut self, text: &str) {
        let mut rest = text;
        while let Some((head, tail)) = rest.split_once('{') {
            // A stray declaration or brace before a selector must not hide its rule.
            let head = head.rsplit(['}', ';']).next().unwrap_or(head).trim();
            if let Some(at) = head.strip_prefix('@') {
                let at = at.to_ascii_lowercase();
                // What only some screens or printers do is left out, but for what is shown.
                let is_for_all = at.starts_with("layer")
                    || at.starts_with("supports")
                    || (at.starts_with("media") && !at.contains("print") && !at.contains("width"));
                // Attack: `@layer{@layer{…` thousands deep. Its rules are read as if they
                // stood outside: no level costs a call or a second look, and the brace that
                // closes it is one before the next selector.
                rest = if is_for_all { tail } else { block(tail).1 };
                continue;
            }
            let (body, after) = block(tail);
            rest = after;
            self.rules(head, body);
        }
    }

    /// Adds a rule for each selector of a head. Attack: `a,a,a,…` with a long body, so the
    /// body is read once, and not at all when there is no place for a rule.
    fn rules(&mut self, head: &str, body: &str) {
        if self.rules.len() >= PAGE_STYLE_RULES_MAX {
            return;
        }
        let says = Declarations::read(body).ruled();
        // Rules that cannot hide anything take no place in the bound.
        if says.hides.is_none() && says.text.is_none() && says.background.is_none() {
            return;
        }
        let says = Rc::new(says);
        for selector in head.split(',') {
            if self.rules.len() >= PAGE_STYLE_RULES_MAX {
                return;
            }
            let parts = selector
                .split([' ', '>', '\n', '\t', '\r'])
                .filter(|part| !part.is_empty());
            // A selector that is not understood as a whole is dropped: half of it would hit
            // other elements.
            let selector: Option<Vec<_>> = parts.map(Compound::read).collect();
            if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
                self.rules.push(Rule {
                    specificity: 1 + selector.iter().map(Compound::specificity).sum::<usize>(),
                    selector,
                    says: Rc::clone(&says),
                });
            }
        }
    }
}

/// The inside of a block, and what follows it.
fn block(text: &str) -> (&str, &str) {
    let mut depth = 1_usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let body = text.get(..at).unwrap_or_default();
            return (body, text.get(at + 1..).unwrap_or_default());
        }
    }
    (text, "")
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, tail)| tail);
    }
    out.push_str(rest);
    out
}

impl Rule {
    fn fits(&self, path: &[&HtmlNode<'_>]) -> bool {
        let Some((own, around)) = path.split_last() else {
            return false;
        };
        let Some((last, outer)) = self.selector.split_last() else {
            return false;
        };
        if !last.fits(own) {
            return false;
        }
        // One iterator for all parts, so that each ancestor stands for at most one of them.
        let mut ancestors = around.iter().rev();
        outer
            .iter()
            .rev()
            .all(|compound| ancestors.any(|ancestor| compound.fits(ancestor)))
    }
}

impl Compound {
    /// Nothing where it says more than is known here, such as `:hover`.
    fn read(text: &str) -> Option<Compound> {
        let mut compound = Compound::default();
        let mut rest = text;
        let is_mark = |c: char| matches!(c, '.' | '#' | ':' | '[' | '+' | '~');
        let name = rest.find(is_mark).unwrap_or(rest.len());
        let (name, tail) = rest.split_at_checked(name)?;
        rest = tail;
        if !name.is_empty() && name != "*" {
            compound.name = Some(name.to_ascii_lowercase());
        }
        while let Some(mark) = rest.chars().next() {
            let tail = rest.get(1..)?;
            let end = tail.find(is_mark).unwrap_or(tail.len());
            let (word, next) = tail.split_at_checked(end)?;
            match mark {
                '.' => compound.classes.push(word.to_owned()),
                '#' => compound.id = Some(word.to_owned()),
                _ => return None,
            }
            rest = next;
        }
        Some(compound)
    }

    fn specificity(&self) -> usize {
        usize::from(self.name.is_some())
            + 10 * self.classes.len()
            + 1000 * usize::from(self.id.is_some())
    }

    fn fits(&self, node: &HtmlNode<'_>) -> bool {
        let name_fits = self
            .name
            .as_deref()
            .is_none_or(|name| node.name() == Some(name));
        let id_fits = self
            .id
            .as_deref()
            .is_none_or(|id| node.attribute("id") == Some(id));
        let has = |class: &String| {
            let own = node.attribute("class").unwrap_or_default();
            own.split_ascii_whitespace().any(|own| own == class)
        };
        name_fits && id_fits && self.classes.iter().all(has)
    }
}
