//! The same search by the shortest way, to hold the index against: every tool is read
//! again for every query, words are texts, and everything found is sorted.

use std::collections::BTreeMap;

use super::super::*;

/// The words of a text, letter by letter into texts of their own.
pub(super) fn words(text: &str) -> Vec<String> {
    let inside = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let mut words = Vec::new();
    for piece in text.split(|letter| !inside(letter)) {
        let letters: Vec<char> = piece.chars().take(limit::SEARCH_WORD_CHARS_MAX).collect();
        let mut found: Vec<String> = parts(&letters);
        if found.len() > 1 {
            found.push(letters.iter().collect());
        }
        let lower = found.iter().map(|word| word::joined(word));
        let telling = lower.filter(|word| !word::is_empty_word(word));
        words.extend(telling.map(|word| word::stemmed(&word)));
    }
    words
}

fn parts(letters: &[char]) -> Vec<String> {
    let is_spaceless = |at: usize| letters.get(at).is_some_and(|l| word::is_spaceless(*l));
    let is_upper = |at: usize| letters[at].is_uppercase();
    let mut parts = vec![String::new()];
    for (at, &letter) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() {
            parts.push(String::new());
            continue;
        }
        let follows = at > 0 && letters[at - 1].is_alphanumeric();
        let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let is_pair = follows && is_spaceless(at) && is_spaceless(at - 1);
        let is_alone = follows && (is_spaceless(at) || is_spaceless(at - 1));
        let is_capital = follows && is_upper(at) && (!is_upper(at - 1) || before_small);
        if is_pair {
            parts.push(letters[at - 1].to_string());
        } else if is_alone || is_capital {
            parts.push(String::new());
        }
        parts.last_mut().expect("one at least").push(letter);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn weights(entry: &SearchEntry<'_>) -> BTreeMap<String, f32> {
    let names = entry.params.iter().map(|param| param.name.as_str());
    let prose = entry.params.iter().map(|param| param.description.as_str());
    let fields: [(Field, Vec<&str>); 8] = [
        (NAME, vec![entry.name]),
        (TITLE, entry.title.into_iter().collect()),
        (PROSE, vec![entry.description]),
        (LABEL, entry.tags.iter().map(String::as_str).collect()),
        (LABEL, entry.category.into_iter().collect()),
        (LABEL, vec![entry.app]),
        (PARAM, names.collect()),
        (PARAM_PROSE, prose.collect()),
    ];
    let mut weights: BTreeMap<String, f32> = BTreeMap::new();
    for (field, texts) in fields {
        let mut words: Vec<_> = texts.into_iter().flat_map(words).collect();
        words.truncate(limit::SEARCH_FIELD_WORDS_MAX);
        let mut counts: BTreeMap<&str, u16> = BTreeMap::new();
        for word in &words {
            *counts.entry(word).or_default() += 1;
        }
        let length = u16::try_from(words.len()).expect("few");
        let thinning = 1.0 - field.thinning + field.thinning * f32::from(length) / field.usual;
        for (word, count) in counts {
            let says = field.weight * f32::from(count) / thinning;
            *weights.entry(word.to_owned()).or_default() += says;
        }
    }
    weights
}

/// What answers a query among these tools.
pub(super) fn search(
    tools: &[SearchEntry<'_>],
    query: &str,
    count_max: usize,
    score_min: f64,
) -> Hits {
    let known: Vec<_> = tools.iter().map(weights).collect();
    let units = word::units(query);
    let mut totals = vec![0.0; tools.len()];
    let (mut most, mut matched, mut unmatched) = (0.0, 0_u32, Vec::new());
    for unit in &units {
        let rarity_of = |form: &String| {
            let holders = known.iter().filter(|words| words.contains_key(form));
            match holders.count() {
                0 => 0.0,
                holders => rarity(holders, tools.len()),
            }
        };
        let rarest = unit.forms.iter().map(rarity_of).fold(0.0, f64::max);
        if rarest == 0.0 {
            unmatched.push(unit.shown.clone());
            continue;
        }
        matched += 1;
        most += rarest;
        for (total, words) in totals.iter_mut().zip(&known) {
            let says = |form: &String| {
                let weight = words.get(form).map_or(0.0, |weight| f64::from(*weight));
                rarity_of(form) * weight / (SATURATION + weight)
            };
            *total += unit.forms.iter().map(says).fold(0.0, f64::max);
        }
    }
    most += most / f64::from(matched.max(1)) * (unmatched.len() as f64);
    let score = |(tool, total): (&SearchEntry<'_>, f64)| {
        let alike =
            !word::joined(query).is_empty() && word::joined(query) == word::joined(tool.name);
        let score = match query.trim() {
            query if query == tool.name => 1.0,
            query if query.eq_ignore_ascii_case(tool.name) => 0.99,
            _ if alike => 0.98,
            _ if total == 0.0 => 0.0,
            _ => (total / most).min(WORDS_SCORE_MAX),
        };
        (tool.name.to_owned(), score)
    };
    let scored = tools.iter().zip(totals).map(score);
    let mut hits: Vec<Hit> = scored
        .filter(|(_, score)| *score > 0.0)
        .map(|(name, score)| Hit {
            name,
            score: (score * 10_000.0).round() / 10_000.0,
        })
        .collect();
    let found = hits.len();
    hits.retain(|hit| hit.score >= score_min && hit.score > 0.0);
    let below = found - hits.len();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.name.cmp(&b.name)));
    hits.truncate(count_max);
    Hits {
        hits,
        below,
        unmatched,
    }
}
