//! Full-text search for tools: an index that is updated one document at a time, and a
//! BM25-like ranking over several fields.
//!
//! Two things differ from the textbook. Lengths are compared with fixed numbers, not
//! against the average of the index, and how rare a word is is counted among what the
//! asker may see. So a score never tells of a tool its reader may not know, a
//! document's weights do not change when another comes, and an index that was changed a
//! thousand times answers exactly as one that was built from scratch.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use model::document::Param;

use crate::limit;

pub mod ask;
mod word;

/// How soon repetitions of a word stop adding score.
const SATURATION: f64 = 1.2;
/// The maximum for words alone, so that a tool whose name is given comes first.
const WORDS_SCORE_MAX: f64 = 0.97;

/// The searchable fields of a tool.
#[derive(Clone, Copy, Debug)]
pub struct SearchEntry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its title, if it has one.
    pub title: Option<&'a str>,
    /// What it does.
    pub description: &'a str,
    /// What it takes.
    pub params: &'a [Param],
    /// Its labels.
    pub tags: &'a [String],
    /// Its category.
    pub category: Option<&'a str>,
    /// The server or collection it comes from.
    pub app: &'a str,
}

/// A field of an entry, and the weight of its words.
#[derive(Clone, Copy)]
struct Field {
    weight: f32,
    /// How much its length lowers the weight of a word, from 0 to 1.
    thinning: f32,
    /// The length at which it neither gains nor loses.
    usual: f32,
}

const NAME: Field = field(3.0, 0.25, 4.0);
const TITLE: Field = field(2.5, 0.25, 4.0);
const LABEL: Field = field(1.5, 0.0, 1.0);
const PARAM: Field = field(0.8, 0.4, 6.0);
const PROSE: Field = field(1.0, 0.6, 24.0);
const PARAM_PROSE: Field = field(0.4, 0.6, 24.0);

const fn field(weight: f32, thinning: f32, usual: f32) -> Field {
    Field {
        weight,
        thinning,
        usual,
    }
}

/// The words of many tools.
#[derive(Clone, Debug, Default)]
pub struct Index {
    words: Words,
    names: HashMap<String, u32>,
    /// Tools by their names without separators.
    joined: HashMap<String, Vec<u32>>,
    entries: Vec<Option<Kept>>,
    free: Vec<u32>,
    /// Counts changes, so that an old view is noticed.
    generation: u64,
}

#[derive(Clone, Debug)]
struct Kept {
    name: String,
    app: String,
    /// By their numbers.
    words: Vec<u32>,
}

/// Every word once, with a number that is used again when no tool has the word.
#[derive(Clone, Debug, Default)]
struct Words {
    // The hash is std's, because others choose the words.
    numbers: HashMap<Arc<str>, u32>,
    known: Vec<Word>,
    free: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Word {
    text: Arc<str>,
    /// By place.
    postings: Vec<Posting>,
}

/// A word in a document, with its weight there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Posting {
    place: u32,
    weight: f32,
}

/// The part of an index that a caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    generation: u64,
    seen: Vec<bool>,
    count: usize,
}

impl View {
    /// How many tools are in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether it was taken of the index as it is now.
    #[must_use]
    pub fn is_of(&self, index: &Index) -> bool {
        self.generation == index.generation
    }

    fn sees(&self, place: u32) -> bool {
        self.seen.get(at(place)).copied().unwrap_or(false)
    }
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its name.
    pub name: String,
    /// How well it fits, above 0 and up to 1, four digits.
    pub score: f64,
}

/// The result of one query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hits {
    /// The best, best first; equals by name.
    pub hits: Vec<Hit>,
    /// How many more there were below the score that was asked for.
    pub below: usize,
    /// Words of the query that are in no tool of the view.
    pub unmatched: Vec<String>,
}

impl Index {
    /// An index of nothing.
    #[must_use]
    pub fn new() -> Index {
        Index::default()
    }

    /// How many tools are in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// How many words it knows.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words.numbers.len()
    }

    /// Puts a tool in, in place of the one of that name.
    pub fn put(&mut self, entry: &SearchEntry<'_>) {
        // An update is a removal and an insertion: the old words must not match any
        // more.
        self.remove(entry.name);
        self.generation += 1;
        let Some(place) = self.place() else { return };
        let weights = weights(entry, &mut self.words);
        for &(word, weight) in &weights {
            self.words.post(word, Posting { place, weight });
        }
        let joined = self.joined.entry(word::joined(entry.name)).or_default();
        joined.push(place);
        self.names.insert(entry.name.to_owned(), place);
        let kept = Kept {
            name: entry.name.to_owned(),
            app: entry.app.to_owned(),
            words: weights.into_iter().map(|(word, _)| word).collect(),
        };
        if let Some(free) = slot(&mut self.entries, place) {
            *free = Some(kept);
        }
    }

    /// Takes a tool out. Says whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(place) = self.names.remove(name) else {
            return false;
        };
        self.generation += 1;
        let kept = slot(&mut self.entries, place).and_then(Option::take);
        for &word in kept.iter().flat_map(|kept| &kept.words) {
            self.words.unpost(word, place);
        }
        let joined = word::joined(name);
        if let Some(places) = self.joined.get_mut(&joined) {
            places.retain(|known| *known != place);
            if places.is_empty() {
                self.joined.remove(&joined);
            }
        }
        // Places are reused, which is why a view carries the generation it was made
        // for.
        self.free.push(place);
        true
    }

    /// A free place. None after four billion tools.
    fn place(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        let place = u32::try_from(self.entries.len()).ok()?;
        self.entries.push(None);
        Some(place)
    }

    /// The part of it that a caller may see. Valid until the index changes.
    #[must_use]
    pub fn view(&self, mut may_see: impl FnMut(&str) -> bool) -> View {
        let seen = self.entries.iter().map(|kept| match kept {
            Some(kept) => may_see(&kept.name),
            None => false,
        });
        self.viewed(seen.collect())
    }

    fn viewed(&self, seen: Vec<bool>) -> View {
        View {
            generation: self.generation,
            count: seen.iter().filter(|seen| **seen).count(),
            seen,
        }
    }

    /// A view without these tools. An outdated view becomes empty.
    #[must_use]
    pub fn without<'a>(&self, view: &View, names: impl IntoIterator<Item = &'a str>) -> View {
        if !view.is_of(self) {
            return self.viewed(Vec::new());
        }
        let mut seen = view.seen.clone();
        let places = names.into_iter().filter_map(|name| self.names.get(name));
        for place in places {
            if let Some(seen) = seen.get_mut(at(*place)) {
                *seen = false;
            }
        }
        self.viewed(seen)
    }

    /// A view with only the tools of some apps. An outdated view becomes empty.
    #[must_use]
    pub fn within(&self, view: &View, mut is_wanted: impl FnMut(&str) -> bool) -> View {
        let is_old = !view.is_of(self);
        let seen = self.entries.iter().zip(&view.seen).map(|(kept, seen)| {
            let kept = kept.as_ref().filter(|_| *seen && !is_old);
            kept.is_some_and(|kept| is_wanted(&kept.app))
        });
        self.viewed(seen.collect())
    }

    /// The app a tool comes from.
    #[must_use]
    pub fn app(&self, name: &str) -> Option<&str> {
        let kept = self.kept(*self.names.get(name)?)?;
        Some(&kept.app)
    }

    /// Whether a tool of this name is in a view.
    #[must_use]
    pub fn has(&self, view: &View, name: &str) -> bool {
        let place = self.names.get(name);
        view.is_of(self) && place.is_some_and(|place| view.sees(*place))
    }

    /// The results of a query within a view. An outdated view sees nothing: its places
    /// belong to other tools now.
    #[must_use]
    pub fn search(&self, view: &View, query: &str, count_max: usize, score_min: f64) -> Hits {
        // Fails closed: places are used again, so an old view could show a hidden tool.
        if !view.is_of(self) {
            return Hits::default();
        }
        let units = word::units(query);
        let mut tally = Tally::new(self.entries.len());
        let mut matched = 0;
        let mut unmatched: Vec<String> = Vec::new();
        for unit in &units {
            if self.add(view, unit, &mut tally) {
                matched += 1;
            } else {
                unmatched.push(unit.shown.clone());
            }
        }
        let mut scores = tally.scores(matched, unmatched.len());
        self.exact(view, query, &mut scores);
        let (hits, below) = self.best(&scores, count_max, score_min);
        Hits {
            hits,
            below,
            unmatched,
        }
    }

    /// Counts one word of a query. Says whether any tool has it.
    fn add(&self, view: &View, unit: &word::Unit, tally: &mut Tally) -> bool {
        let mut rarest: f64 = 0.0;
        for form in &unit.forms {
            let postings = self.words.postings(form);
            let seen = postings.iter().filter(|posting| view.sees(posting.place));
            let holders = seen.clone().count();
            if holders == 0 {
                continue;
            }
            // Invariant 10: only tools of the view are counted, so that a score tells
            // nothing about hidden ones.
            let rarity = rarity(holders, view.count);
            rarest = rarest.max(rarity);
            for posting in seen {
                let weight = f64::from(posting.weight);
                tally.word(posting.place, rarity * weight / (SATURATION + weight));
            }
        }
        tally.end_unit(rarest);
        rarest > 0.0
    }

    /// A query that is a tool's name finds that tool: exactly, in another case, or with
    /// other separators.
    fn exact(&self, view: &View, query: &str, scores: &mut [f64]) {
        let query = query.trim();
        let joined = word::joined(query);
        let places = self.joined.get(&joined).map_or(&[][..], Vec::as_slice);
        // Also for a name that is given: a hidden tool is not found by spelling it out.
        for &place in places.iter().filter(|place| view.sees(**place)) {
            let name = self.kept(place).map_or("", |kept| kept.name.as_str());
            let score = if name == query {
                1.0
            } else if name.eq_ignore_ascii_case(query) {
                0.99
            } else if joined.is_empty() {
                continue;
            } else {
                0.98
            };
            if let Some(known) = scores.get_mut(at(place)) {
                *known = score;
            }
        }
    }

    /// The best of what was found, and how many were not good enough. Only as many
    /// are sorted as are asked for.
    fn best(&self, scores: &[f64], count_max: usize, score_min: f64) -> (Vec<Hit>, usize) {
        let mut best: BinaryHeap<Ranked<'_>> = BinaryHeap::new();
        let mut below = 0;
        for (kept, score) in self.entries.iter().zip(scores) {
            let (Some(kept), true) = (kept, *score > 0.0) else {
                continue;
            };
            // Rounded before comparing: scores that look equal to the caller are
            // ordered by name.
            let score = (score * 10_000.0).round() / 10_000.0;
            if score < score_min || score == 0.0 {
                below += 1;
                continue;
            }
            let name = kept.name.as_str();
            let found = Ranked { score, name };
            if best.len() < count_max {
                best.push(found);
            } else if let Some(mut last) = best.peek_mut()
                && found < *last
            {
                *last = found;
            }
        }
        let hit = |found: Ranked<'_>| Hit {
            name: found.name.to_owned(),
            score: found.score,
        };
        (best.into_sorted_vec().into_iter().map(hit).collect(), below)
    }

    fn kept(&self, place: u32) -> Option<&Kept> {
        self.entries.get(at(place))?.as_ref()
    }
}

fn slot(entries: &mut [Option<Kept>], place: u32) -> Option<&mut Option<Kept>> {
    entries.get_mut(at(place))
}

/// The weight of a word that `holders` of `count` tools have. Never zero, so that a
/// single tool can be found too.
fn rarity(holders: usize, count: usize) -> f64 {
    let (holders, count) = (holders as f64, count as f64);
    ((count - holders + 0.5) / (holders + 0.5)).max(0.0).ln_1p()
}

impl Words {
    /// The number of a word, which gets one if it is new. None after four billion
    /// words.
    fn number(&mut self, text: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.known.len()).ok()?;
                self.known.push(Word::default());
                number
            }
        };
        let text: Arc<str> = text.into();
        if let Some(word) = self.known.get_mut(at(number)) {
            word.text = Arc::clone(&text);
        }
        self.numbers.insert(text, number);
        Some(number)
    }

    fn postings(&self, text: &str) -> &[Posting] {
        let number = self.numbers.get(text);
        let word = number.and_then(|number| self.known.get(at(*number)));
        word.map_or(&[], |word| &word.postings)
    }

    fn post(&mut self, number: u32, posting: Posting) {
        let Some(Word { postings, .. }) = self.known.get_mut(at(number)) else {
            return;
        };
        // A new tool is at the end.
        if postings
            .last()
            .is_none_or(|last| last.place < posting.place)
        {
            postings.push(posting);
            return;
        }
        let at = postings.partition_point(|known| known.place < posting.place);
        postings.insert(at, posting);
    }

    fn unpost(&mut self, number: u32, place: u32) {
        let Some(word) = self.known.get_mut(at(number)) else {
            return;
        };
        let postings = &mut word.postings;
        if let Ok(at) = postings.binary_search_by_key(&place, |posting| posting.place) {
            postings.remove(at);
        }
        if postings.is_empty() {
            // Forgotten with its last tool, so that an index of changing
            // tools does not grow.
            self.numbers.remove(&word.text);
            *word = Word::default();
            self.free.push(number);
        }
    }
}

/// The words of an entry by their numbers, each once, and their weights.
fn weights(entry: &SearchEntry<'_>, words: &mut Words) -> Vec<(u32, f32)> {
    let mut weights = Vec::new();
    let one = std::iter::once;
    let mut reader = word::Reader::default();
    let mut add = |field: Field, texts: &mut dyn Iterator<Item = &str>| {
        let numbers = numbers(texts, words, &mut reader);
        add_field(field, numbers, &mut weights);
    };
    add(NAME, &mut one(entry.name));
    add(TITLE, &mut entry.title.into_iter());
    add(PROSE, &mut one(entry.description));
    add(LABEL, &mut entry.tags.iter().map(String::as_str));
    add(LABEL, &mut entry.category.into_iter());
    add(LABEL, &mut one(entry.app));
    let params = entry.params.iter();
    add(PARAM, &mut params.clone().map(|param| param.name.as_str()));
    let prose = params.map(|param| param.description.as_str());
    add(PARAM_PROSE, &mut { prose });
    // Stable, for a sum of fractions depends on its order.
    weights.sort_by_key(|(word, _)| *word);
    weights.dedup_by(|later, sum| {
        let is_same = later.0 == sum.0;
        if is_same {
            sum.1 += later.1;
        }
        is_same
    });
    weights
}

/// The words of a field, as often as they are there.
fn numbers(
    texts: &mut dyn Iterator<Item = &str>,
    words: &mut Words,
    reader: &mut word::Reader,
) -> Vec<u32> {
    let mut numbers = Vec::new();
    for text in texts {
        reader.forms(text, |form| {
            if numbers.len() == limit::SEARCH_FIELD_WORDS_MAX {
                return ControlFlow::Break(());
            }
            numbers.extend(words.number(form));
            ControlFlow::Continue(())
        });
    }
    numbers
}

/// Adds the weight of each word of a field, each word once.
fn add_field(field: Field, mut numbers: Vec<u32>, weights: &mut Vec<(u32, f32)>) {
    numbers.sort_unstable();
    let length = small(numbers.len());
    let thinning = 1.0 - field.thinning + field.thinning * f32::from(length) / field.usual;
    for same in numbers.chunk_by(|a, b| a == b) {
        let weight = field.weight * f32::from(small(same.len())) / thinning;
        weights.extend(same.first().map(|word| (*word, weight)));
    }
}

fn small(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// A hit before its name is known, in the order of hits: the best is the least.
#[derive(PartialEq)]
struct Ranked<'a> {
    score: f64,
    name: &'a str,
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then_with(|| self.name.cmp(other.name))
    }
}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Ranked<'_> {}

/// The scores of one query, by place.
struct Tally {
    /// The best score of the current word.
    unit: Vec<f64>,
    touched: Vec<usize>,
    totals: Vec<f64>,
    /// The score of a tool that has every word.
    most: f64,
}

impl Tally {
    fn new(places: usize) -> Tally {
        Tally {
            unit: vec![0.0; places],
            touched: Vec::new(),
            totals: vec![0.0; places],
            most: 0.0,
        }
    }

    fn word(&mut self, place: u32, says: f64) {
        let at = at(place);
        if let Some(best) = self.unit.get_mut(at) {
            if *best == 0.0 {
                self.touched.push(at);
            }
            // The best form counts once: a word must not gain by being found twice.
            *best = best.max(says);
        }
    }

    fn end_unit(&mut self, rarest: f64) {
        self.most += rarest;
        for at in self.touched.drain(..) {
            if let (Some(best), Some(total)) = (self.unit.get_mut(at), self.totals.get_mut(at)) {
                *total += *best;
                *best = 0.0;
            }
        }
    }

    /// The share of the query each tool answers, by place. A word that no tool has
    /// counts like an average one: a tool that answers half of a query must not score
    /// as if it answered all.
    fn scores(self, matched: usize, unmatched: usize) -> Vec<f64> {
        let average = self.most / (matched.max(1) as f64);
        let most = self.most + average * (unmatched as f64);
        let mut scores = self.totals;
        if most > 0.0 {
            for score in &mut scores {
                *score = (*score / most).min(WORDS_SCORE_MAX);
            }
        }
        scores
    }
}

/// A place as an index.
fn at(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
