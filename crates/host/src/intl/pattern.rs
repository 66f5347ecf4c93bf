//! Recorded patterns, such as `{L1} {d}, {y}`: literals, and fields in braces.

/// One piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    Field(Field),
}

/// A field and how it is written; numbers are indexes of lists of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Year(Digits),
    Month(Digits),
    MonthName(usize),
    Day(Digits),
    Weekday(usize),
    Era,
    Hour(Digits),
    Minute(Digits),
    Second(Digits),
    DayPeriod(usize),
    Fraction,
    Zone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digits {
    Numeric,
    Two,
}

/// Reads a pattern; literals beside each other become one.
pub(super) fn read(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some((literal, tail)) = rest.split_once('{') {
        push(&mut pieces, literal);
        let Some((name, tail)) = tail.split_once('}') else {
            break;
        };
        pieces.extend(field(name).map(Piece::Field));
        rest = tail;
    }
    push(&mut pieces, rest);
    pieces
}

fn push(pieces: &mut Vec<Piece>, literal: &str) {
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal.to_owned()));
    }
}

fn field(name: &str) -> Option<Field> {
    let list = || name.get(1..)?.parse().ok();
    Some(match name {
        "y" => Field::Year(Digits::Numeric),
        "yy" => Field::Year(Digits::Two),
        "M" => Field::Month(Digits::Numeric),
        "MM" => Field::Month(Digits::Two),
        "d" => Field::Day(Digits::Numeric),
        "dd" => Field::Day(Digits::Two),
        "G" => Field::Era,
        "h" => Field::Hour(Digits::Numeric),
        "hh" => Field::Hour(Digits::Two),
        "m" => Field::Minute(Digits::Numeric),
        "mm" => Field::Minute(Digits::Two),
        "s" => Field::Second(Digits::Numeric),
        "ss" => Field::Second(Digits::Two),
        "S" => Field::Fraction,
        "z" => Field::Zone,
        _ if name.starts_with('L') => Field::MonthName(list()?),
        _ if name.starts_with('E') => Field::Weekday(list()?),
        _ if name.starts_with('a') => Field::DayPeriod(list()?),
        _ => return None,
    })
}
