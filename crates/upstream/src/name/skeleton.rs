//! The look of a name. Two names with one skeleton can be mistaken for each other.
//!
//! After UTS 39, reduced to characters that look like ASCII: small tables instead of
//! the ten thousand lines of the standard, because a name in any other script is found
//! by its script.

/// The skeleton of a name: letters that look alike are one letter, case, separators and
/// zero-width characters are ignored.
#[must_use]
pub fn skeleton(name: &str) -> String {
    let mut skeleton = String::with_capacity(name.len());
    for character in name.chars() {
        if model::text::is_hidden(character) || matches!(character, '_' | '-' | '.' | '/' | ' ') {
            continue;
        }
        for lower in look(character).to_lowercase() {
            skeleton.push(fold(lower));
        }
    }
    skeleton.replace("rn", "m").replace("vv", "w")
}

/// Within ASCII: digits and letters that few typefaces tell apart.
fn fold(character: char) -> char {
    match character {
        '0' => 'o',
        '1' | 'i' | '|' | '!' => 'l',
        '5' => 's',
        other => other,
    }
}

/// The ASCII letter a character passes for, or itself.
fn look(character: char) -> char {
    let code = u32::from(character);
    let letter = |offset: u32, first: char| char::from_u32(u32::from(first) + offset);
    let alias = match code {
        // Full width, and the letters and digits of mathematics.
        0xff01..=0xff5e => letter(code - 0xff01, '!'),
        0x1d400..=0x1d6a3 => {
            let place = (code - 0x1d400) % 52;
            match place {
                0..26 => letter(place, 'A'),
                _ => letter(place - 26, 'a'),
            }
        }
        0x1d7ce..=0x1d7ff => letter((code - 0x1d7ce) % 10, '0'),
        0x24b6..=0x24cf => letter(code - 0x24b6, 'A'),
        0x24d0..=0x24e9 => letter(code - 0x24d0, 'a'),
        _ => LOOKS
            .iter()
            .find(|(_, members)| members.contains(character))
            .map(|(ascii, _)| *ascii),
    };
    alias.unwrap_or(character)
}

/// Letters of Latin, Greek, Cyrillic, Armenian and Cherokee that pass for ASCII.
const LOOKS: &[(char, &str)] = &[
    ('a', "аαａàáâãäåāăąǎɑᴀⱥ"),
    ('A', "АΑᎪ"),
    ('b', "ЬƅЬбḃ"),
    ('B', "ВΒᏴʙ"),
    ('c', "сϲçćĉċčᴄ"),
    ('C', "СϹᏟ"),
    ('d', "ԁďđɗժ"),
    ('D', "Ꭰ"),
    ('e', "еёєεèéêëēĕėęěҽ"),
    ('E', "ЕΕᎬ"),
    ('f', "ƒϝք"),
    ('g', "ɡĝğġģցԍ"),
    ('G', "ԌᏀ"),
    ('h', "һհĥħ"),
    ('H', "НΗᎻ"),
    ('i', "іїιìíîïĩīĭįıɩ"),
    ('I', "ІΙӀ"),
    ('j', "јϳĵյ"),
    ('J', "ЈᎫ"),
    ('k', "кκķĸ"),
    ('K', "КΚᏦ"),
    ('l', "ӏĺļľŀłⅼ"),
    ('L', "Ꮮ"),
    ('m', "мṃⅿ"),
    ('M', "МΜϺᎷ"),
    ('n', "ոпηñńņňŉ"),
    ('N', "ΝƝ"),
    ('o', "оοσօòóôõöøōŏőоᴏ"),
    ('O', "ОΟՕ"),
    ('p', "рρϱƿ"),
    ('P', "РΡᏢ"),
    ('q', "ԛզգ"),
    ('Q', "Ԛ"),
    ('r', "гŕŗřɼ"),
    ('R', "ᎡᏒ"),
    ('s', "ѕśŝşšꜱ"),
    ('S', "ЅᏚՏ"),
    ('t', "тτţťŧ"),
    ('T', "ТΤᎢ"),
    ('u', "υսùúûüũūŭůűųц"),
    ('U', "Սᑌ"),
    ('v', "νѵᴠ"),
    ('V', "ѴᏙ"),
    ('w', "ԝωŵᴡш"),
    ('W', "ԜᎳ"),
    ('x', "хχ"),
    ('X', "ХΧ"),
    ('y', "уүγýÿŷ"),
    ('Y', "ΥҮ"),
    ('z', "źżžᴢ"),
    ('Z', "ΖᏃ"),
    ('-', "‐‑‒–—−﹣"),
    ('_', "＿﹍﹎"),
    ('/', "⁄∕"),
    ('.', "․"),
];

/// The alphabets that have letters which look alike.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    Latin,
    Greek,
    Cyrillic,
    Armenian,
    Cherokee,
    /// Letters of no language: mathematics, full width, circled.
    Styled,
    Other,
}

/// Whether a name mixes letters of alphabets that look alike, or uses letters of
/// mathematics, full width or circles, which pass for plain ones.
#[must_use]
pub fn is_mixed_script(name: &str) -> bool {
    let mut first = None;
    for character in name.chars().filter(|character| character.is_alphabetic()) {
        match alphabet(character) {
            Alphabet::Styled => return true,
            Alphabet::Other => {}
            one => match first {
                None => first = Some(one),
                Some(other) if other != one => return true,
                Some(_) => {}
            },
        }
    }
    false
}

fn alphabet(character: char) -> Alphabet {
    match u32::from(character) {
        0x41..=0x24f | 0x1e00..=0x1eff => Alphabet::Latin,
        0x250..=0x2af
        | 0x1d00..=0x1d7f
        | 0x1d400..=0x1d7ff
        | 0xff01..=0xff5e
        | 0x24b6..=0x24e9
        | 0x2100..=0x218f => Alphabet::Styled,
        0x370..=0x3ff | 0x1f00..=0x1fff => Alphabet::Greek,
        0x400..=0x52f | 0x1c80..=0x1c8f => Alphabet::Cyrillic,
        0x530..=0x58f => Alphabet::Armenian,
        0x13a0..=0x13ff | 0xab70..=0xabbf => Alphabet::Cherokee,
        _ => Alphabet::Other,
    }
}
