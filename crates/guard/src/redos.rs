//! Whether a regular expression can take polynomial or exponential time on some inputs.
//!
//! A judgement from the shape of the pattern, in linear time: what repeats inside a
//! repetition, alternatives of a repetition that start alike, neighbours that
//! repeat the same characters. It errs on the side of refusing.

/// The verdict on a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// No repetition that backtracks much.
    Linear,
    /// Neighbours repeat the same characters: slow on long texts.
    Polynomial,
    /// A repetition repeats: practically endless even on short texts.
    Exponential,
}

/// From this many rounds on a bounded repetition counts as unbounded.
const ROUNDS_MAX: u32 = 10;

/// Judges a pattern, written without its slashes. Attack: `/(a|A)+$/i`, whose alternatives
/// differ only where letters are told apart.
pub(crate) fn judge(pattern: &str, ignores_case: bool) -> Verdict {
    let mut reader = Reader {
        characters: pattern.chars().collect(),
        at: 0,
        ignores_case,
        verdict: Verdict::Linear,
    };
    reader.run();
    reader.verdict
}

/// Which characters a part can match: ASCII one by one, all others as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Set {
    ascii: u128,
    others: bool,
}

impl Set {
    const ALL: Set = Set {
        ascii: u128::MAX,
        others: true,
    };

    fn of(character: char) -> Set {
        let mut set = Set::default();
        set.add(character, character);
        set
    }

    fn add(&mut self, from: char, to: char) {
        // Only ASCII one by one. Everything beyond is one character, which errs on the side
        // of refusing.
        for code in u32::from(from)..=u32::from(to).min(127) {
            self.ascii |= 1u128.checked_shl(code).unwrap_or(0);
        }
        self.others |= !to.is_ascii();
    }

    fn join(self, other: Set) -> Set {
        Set {
            ascii: self.ascii | other.ascii,
            others: self.others || other.others,
        }
    }

    fn invert(self) -> Set {
        Set {
            ascii: !self.ascii,
            others: true,
        }
    }

    /// The same where large and small letters are one.
    fn with_both_cases(self) -> Set {
        const SMALL: u128 = ((1 << 26) - 1) << 97;
        const LARGE: u128 = ((1 << 26) - 1) << 65;
        let (small, large) = (self.ascii & SMALL, self.ascii & LARGE);
        let ascii = self.ascii | small >> 32 | large << 32;
        // The long s and the sign of Kelvin are the only letters beyond ASCII with one in it.
        let has_others = ascii & Set::of('k').join(Set::of('s')).ascii != 0;
        Set {
            ascii,
            others: self.others || has_others,
        }
    }

    fn meets(self, other: Set) -> bool {
        self.ascii & other.ascii != 0 || (self.others && other.others)
    }

    /// `\d`, `\w`, `\s` and their opposites.
    fn class(letter: char) -> Option<Set> {
        let mut set = Set::default();
        match letter.to_ascii_lowercase() {
            'd' => set.add('0', '9'),
            'w' => {
                set.add('0', '9');
                set.add('a', 'z');
                set.add('A', 'Z');
                set.add('_', '_');
            }
            's' => {
                set.add('\t', '\r');
                set.add(' ', ' ');
                set.others = true;
            }
            // Properties of Unicode may match anything, and so may their opposites.
            'p' => set = Set::ALL,
            _ => return None,
        }
        if letter == 'p' || letter == 'P' {
            return Some(Set::ALL);
        }
        Some(if letter.is_ascii_uppercase() {
            set.invert()
        } else {
            set
        })
    }
}

/// One part of a sequence, its quantifier applied.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// What it can match.
    set: Set,
    /// What it can start with.
    first: Set,
    /// It can match nothing.
    is_nullable: bool,
    /// The characters of unbounded repetitions, in it or below it.
    repeats: Option<Set>,
}

#[derive(Debug, Default)]
struct Group {
    alternatives: Vec<Vec<Part>>,
    current: Vec<Part>,
    is_zero_width: bool,
}

struct Reader {
    characters: Vec<char>,
    at: usize,
    ignores_case: bool,
    verdict: Verdict,
}

impl Reader {
    /// What a set stands for under the flags.
    fn flagged(&self, set: Set) -> Set {
        match self.ignores_case {
            true => set.with_both_cases(),
            false => set,
        }
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn run(&mut self) {
        let mut open: Vec<Group> = Vec::new();
        let mut group = Group::default();
        while let Some(character) = self.next() {
            let part = match character {
                '(' => {
                    open.push(std::mem::take(&mut group));
                    group.is_zero_width = self.group_kind();
                    continue;
                }
                ')' => {
                    let Some(outer) = open.pop() else {
                        continue;
                    };
                    let closed = std::mem::replace(&mut group, outer);
                    let part = self.close(closed);
                    group.current.push(part);
                    continue;
                }
                '|' => {
                    let done = std::mem::take(&mut group.current);
                    group.alternatives.push(done);
                    continue;
                }
                '^' | '$' => continue,
                '.' => Set::ALL,
                '[' => self.class(),
                '\\' => match self.escape() {
                    Some(set) => set,
                    None => continue,
                },
                plain => self.flagged(Set::of(plain)),
            };
            let (part, _) = self.parse_quantifier(part, part, false, None);
            group.current.push(part);
        }
        // The parser refuses a group that never closes.
        while let Some(outer) = open.pop() {
            let closed = std::mem::replace(&mut group, outer);
            self.close(closed);
        }
        self.close(group);
    }

    /// Reads `?:`, `?=`, `?<name>` and so on; whether the group matches no text.
    fn group_kind(&mut self) -> bool {
        if self.peek() != Some('?') {
            return false;
        }
        self.at += 1;
        match self.next() {
            // Flags of the group alone, such as `(?i:`. From here on they count for the whole
            // rest, which errs on the side of refusing.
            Some(mut flag) if flag.is_ascii_alphabetic() || flag == '-' => loop {
                self.ignores_case |= flag == 'i';
                match self.next() {
                    Some(next) if next != ':' => flag = next,
                    Some(_) | None => return false,
                }
            },
            Some('=' | '!') => true,
            Some('<') if matches!(self.peek(), Some('=' | '!')) => {
                self.at += 1;
                true
            }
            Some('<') => {
                while self.next().is_some_and(|character| character != '>') {}
                false
            }
            _ => false,
        }
    }

    fn close(&mut self, mut group: Group) -> Part {
        let last = std::mem::take(&mut group.current);
        group.alternatives.push(last);
        let mut set = Set::default();
        let mut first = Set::default();
        let mut is_nullable = false;
        let mut repeats: Option<Set> = None;
        for sequence in &group.alternatives {
            self.neighbours(sequence);
            set = sequence.iter().fold(set, |set, part| set.join(part.set));
            first = first.join(starts(sequence));
            is_nullable |= sequence.iter().all(|part| part.is_nullable);
            for inner in sequence.iter().filter_map(|part| part.repeats) {
                repeats = Some(repeats.unwrap_or_default().join(inner));
            }
        }
        let (part, goes_round) = self.parse_quantifier(set, first, is_nullable, repeats);
        if goes_round {
            self.check_repetition(&group);
        }
        // Looks around without using up text. What repeats in it was judged by itself.
        if group.is_zero_width {
            return Part {
                set: Set::default(),
                first: Set::default(),
                is_nullable: true,
                repeats: None,
            };
        }
        part
    }

    /// A group that goes round often: does its body leave a choice of how to
    /// share the text between the rounds?
    fn check_repetition(&mut self, group: &Group) {
        for (index, sequence) in group.alternatives.iter().enumerate() {
            for (place, part) in sequence.iter().enumerate() {
                let Some(inner) = part.repeats else {
                    continue;
                };
                // A part that must be there and shares no character with what
                // repeats marks the end of each round: `(\d+,)+` is harmless.
                let has_mark = sequence.iter().enumerate().any(|(other, mark)| {
                    other != place
                        && !mark.is_nullable
                        && mark.repeats.is_none()
                        && !mark.set.meets(inner)
                });
                if !has_mark {
                    self.verdict = Verdict::Exponential;
                }
            }
            let first = starts(sequence);
            let later = group.alternatives.get(index + 1..).unwrap_or(&[]);
            if later.iter().any(|other| starts(other).meets(first)) {
                self.verdict = Verdict::Exponential;
            }
        }
    }

    /// Neighbours that repeat the same characters.
    fn neighbours(&mut self, sequence: &[Part]) {
        let mut open: Option<Set> = None;
        for part in sequence {
            match (open, part.repeats) {
                (Some(before), Some(inner)) if before.meets(part.first) => {
                    self.verdict = self.verdict.max(Verdict::Polynomial);
                    // Both together: a third neighbour may meet either of them.
                    open = Some(before.join(inner));
                }
                (_, Some(inner)) => open = Some(inner),
                // A part that must be there and shares no character keeps the two apart.
                (Some(before), None) if !part.is_nullable && !part.set.meets(before) => open = None,
                (_, None) => {}
            }
        }
    }

    /// A part with the quantifier that follows it, and whether that goes round often.
    fn parse_quantifier(
        &mut self,
        set: Set,
        first: Set,
        is_nullable: bool,
        inner: Option<Set>,
    ) -> (Part, bool) {
        let (is_optional, goes_round) = self.quantifier();
        let repeats = if goes_round {
            Some(inner.unwrap_or_default().join(set))
        } else {
            inner
        };
        let part = Part {
            set,
            first,
            is_nullable: is_nullable || is_optional,
            repeats,
        };
        (part, goes_round)
    }

    /// Whether a quantifier follows that allows nothing, or many rounds.
    fn quantifier(&mut self) -> (bool, bool) {
        let found = match self.peek() {
            Some('*') => (true, true),
            Some('+') => (false, true),
            Some('?') => (true, false),
            Some('{') => match self.parse_count() {
                Some(found) => {
                    self.lazy();
                    return found;
                }
                None => return (false, false),
            },
            _ => return (false, false),
        };
        self.at += 1;
        self.lazy();
        found
    }

    fn lazy(&mut self) {
        if self.peek() == Some('?') {
            self.at += 1;
        }
    }

    /// `{2}`, `{2,}` or `{2,5}`; anything else is plain text.
    fn parse_count(&mut self) -> Option<(bool, bool)> {
        let start = self.at;
        self.at += 1;
        let least = self.count();
        let mut most = least;
        let mut is_open = false;
        if self.peek() == Some(',') {
            self.at += 1;
            most = self.count();
            is_open = most.is_none();
        }
        if least.is_none() || self.peek() != Some('}') {
            // The brace is plain text, and read as the next part.
            self.at = start;
            return None;
        }
        self.at += 1;
        let many = is_open || most.is_some_and(|most| most >= ROUNDS_MAX);
        Some((least == Some(0), many))
    }

    fn count(&mut self) -> Option<u32> {
        let mut count: Option<u32> = None;
        while let Some(digit) = self.peek().and_then(|character| character.to_digit(10)) {
            self.at += 1;
            count = Some(count.unwrap_or(0).saturating_mul(10).saturating_add(digit));
        }
        count
    }

    /// A class in brackets; nested ones of the `v` flag are read as one.
    fn class(&mut self) -> Set {
        let mut set = Set::default();
        let is_inverted = self.peek() == Some('^');
        if is_inverted {
            self.at += 1;
        }
        while let Some(character) = self.next() {
            let from = match character {
                ']' => break,
                '\\' => {
                    let letter = self.next().unwrap_or('\\');
                    if let Some(class) = Set::class(letter) {
                        set = set.join(class);
                        continue;
                    }
                    control(letter)
                }
                plain => plain,
            };
            if self.peek() == Some('-')
                && self
                    .characters
                    .get(self.at + 1)
                    .is_some_and(|next| *next != ']')
            {
                self.at += 1;
                let to = match self.next() {
                    Some('\\') => control(self.next().unwrap_or('\\')),
                    Some(plain) => plain,
                    None => from,
                };
                set.add(from, to);
            } else {
                set.add(from, from);
            }
        }
        // Before it is inverted: `/[^a]/i` is not `A` either.
        let set = self.flagged(set);
        if is_inverted { set.invert() } else { set }
    }

    /// What an escape outside a class matches; `None` if it matches no text.
    fn escape(&mut self) -> Option<Set> {
        let letter = self.next()?;
        match letter {
            'b' | 'B' => None,
            // A back reference can match anything.
            // An escape by number is not read, and so may be any character.
            '1'..='9' | 'k' | 'x' | 'u' | 'c' => Some(Set::ALL),
            letter => Some(match Set::class(letter) {
                Some(class) => class,
                None => self.flagged(Set::of(control(letter))),
            }),
        }
    }
}

fn control(letter: char) -> char {
    match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '0' => '\0',
        other => other,
    }
}

/// What a sequence can start with.
fn starts(sequence: &[Part]) -> Set {
    let mut set = Set::default();
    for part in sequence {
        set = set.join(part.first);
        if !part.is_nullable {
            break;
        }
    }
    set
}

#[cfg(test)]
mod tests;
