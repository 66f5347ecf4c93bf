//! Whether a person would see an element, as far as the page itself says.

use crate::page::style::{Declarations, Styles};
use crate::parser::html::HtmlNode;

/// Elements whose text is no text.
pub(super) const CODE: [&str; 2] = ["script", "style"];

/// Elements that browsers do not show.
const UNSHOWN: [&str; 17] = [
    "script", "style", "head", "template", "noscript", "iframe", "object", "embed", "audio",
    "video", "canvas", "svg", "math", "datalist", "select", "textarea", "dialog",
];

/// Whether the text of an element is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Yes,
    /// It is not, and has not been counted.
    No,
    /// It is not, and was counted.
    Counted,
}

/// The colours in force inside an element.
#[derive(Clone, Debug, Default)]
struct Colours {
    text: Option<String>,
    background: Option<String>,
}

/// Follows the walk over a page.
#[derive(Debug)]
pub(super) struct Visibility<'a> {
    styles: &'a Styles,
    path: Vec<&'a HtmlNode<'a>>,
    colours: Vec<Colours>,
}

impl<'a> Visibility<'a> {
    pub(super) fn new(styles: &'a Styles) -> Visibility<'a> {
        Visibility {
            styles,
            path: Vec::new(),
            colours: Vec::new(),
        }
    }

    /// Goes into an element, and says whether it is shown by itself.
    pub(super) fn enter(&mut self, node: &'a HtmlNode<'a>) -> Seen {
        self.path.push(node);
        let own = node.attribute("style").map(Declarations::read);
        let own = own.unwrap_or_default();
        let ruled = self.styles.of(&self.path);
        let mut colours = self.colours.last().cloned().unwrap_or_default();
        let background = own.background().or(ruled.background.as_deref());
        // Style before attribute: that is how browsers weigh them.
        let background = background.or_else(|| node.attribute("bgcolor"));
        if let Some(background) = background.and_then(colour) {
            colours.background = Some(background);
        }
        let text = own.text_colour().or(ruled.text.as_deref());
        let text = text.or_else(|| {
            node.attribute("color")
                .filter(|_| node.name() == Some("font"))
        });
        if let Some(text) = text.and_then(colour) {
            colours.text = Some(text);
        }
        // Attack: white words on white paper. Inherited colours count, so both are
        // kept for each level.
        let is_unreadable = match (&colours.text, &colours.background) {
            (Some(text), Some(background)) => text == background,
            (text, _) => text.as_deref() == Some(CLEAR),
        };
        self.colours.push(colours);
        let name = node.name().unwrap_or_default();
        // A style of its own stands above those of the page.
        let is_styled = own.hides().or(ruled.hides).unwrap_or_default();
        let is_marked = UNSHOWN.contains(&name) || node.attribute("hidden").is_some();
        match is_marked || is_styled || is_unreadable {
            true => Seen::No,
            false => Seen::Yes,
        }
    }

    pub(super) fn leave(&mut self) {
        self.path.pop();
        self.colours.pop();
    }
}

/// No colour at all.
const CLEAR: &str = "clear";

/// A colour in one spelling; nothing if it is none that is known.
fn colour(word: &str) -> Option<String> {
    let word = word.trim().to_ascii_lowercase();
    let word = word.trim_end_matches("!important").trim();
    let hex = |digits: &str| -> Option<String> {
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (is_hex, digits.len()) {
            (true, 3 | 4) => {
                let doubled: String = digits
                    .chars()
                    .take(3)
                    .flat_map(|digit| [digit, digit])
                    .collect();
                let is_clear = digits.get(3..) == Some("0");
                Some(if is_clear { CLEAR.to_owned() } else { doubled })
            }
            (true, 6) => Some(digits.to_owned()),
            (true, 8) => Some(match digits.get(6..) {
                Some("00") => CLEAR.to_owned(),
                _ => digits.get(..6)?.to_owned(),
            }),
            _ => None,
        }
    };
    if let Some(digits) = word.strip_prefix('#') {
        return hex(digits);
    }
    if let Some((function, rest)) = word.split_once('(') {
        let parts = rest.trim_end_matches(')').split([',', ' ', '/']);
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        let is_rgb = matches!(function, "rgb" | "rgba");
        // Before the function is looked at: a colour without opacity hides in every function, also
        // in those whose colours are not read here.
        if parts.get(3).is_some_and(|alpha| is_nothing(alpha)) {
            return Some(CLEAR.to_owned());
        }
        let channel = |index: usize| -> Option<u8> { parts.get(index)?.parse().ok() };
        let (red, green, blue) = (channel(0)?, channel(1)?, channel(2)?);
        return is_rgb.then(|| format!("{red:02x}{green:02x}{blue:02x}"));
    }
    let known = match word {
        "white" => "ffffff",
        "black" => "000000",
        "red" => "ff0000",
        "lime" => "00ff00",
        "green" => "008000",
        "blue" => "0000ff",
        "yellow" => "ffff00",
        "gray" | "grey" => "808080",
        "silver" => "c0c0c0",
        "transparent" => CLEAR,
        _ => return None,
    };
    Some(known.to_owned())
}

/// Whether a CSS number is zero, in any unit.
pub(super) fn is_nothing(value: &str) -> bool {
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    number.parse::<f64>().is_ok_and(|number| number == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_colour_has_one_spelling() {
        for white in [
            "white",
            "#FFF",
            "#ffffff",
            "rgb(255, 255, 255)",
            "rgba(255 255 255 / 1)",
            " WHITE !important",
        ] {
            assert_eq!(colour(white).as_deref(), Some("ffffff"), "{white}");
        }
        for clear in [
            "transparent",
            "#0000",
            "#12345600",
            "rgba(1,2,3,0)",
            "rgb(1 2 3 / 0%)",
        ] {
            assert_eq!(colour(clear).as_deref(), Some(CLEAR), "{clear}");
        }
        assert_eq!(colour("var(--x)"), None);
        assert_eq!(colour("inherit"), None);
    }
}
