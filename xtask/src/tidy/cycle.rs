//! The top modules of a crate form no cycle: of two modules at most one knows
//! the other, so that a crate can be read from the bottom up.
//!
//! The root of a crate is not in this graph, because it sees all modules. What it
//! exports again counts as the module that defines it. Cycles that are older than the
//! rule are listed in `xtask/tidy.toml`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::tidy::exception::{self, Knot, LISTS};
use crate::tidy::finding::TidyFinding;
use crate::tidy::mention::{Mention, mentions_in};
use crate::tidy::source::SourceFile;
use crate::tidy::token::{Lexeme, Token};
use crate::tidy::tree::Tree;

/// Cycles that are not listed, and listed ones that are gone.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut listed = match exception::knots(tree) {
        Ok(listed) => listed,
        Err(finding) => return vec![finding],
    };
    let mut crates: BTreeMap<&str, Vec<SourceFile<'_>>> = BTreeMap::new();
    for source in SourceFile::all(tree) {
        crates.entry(source.crate_name).or_default().push(source);
    }
    let mut found = Vec::new();
    for (name, sources) in &crates {
        let allowed = listed.remove(*name).unwrap_or_default();
        let graph = Graph::of(sources);
        let knots = graph.knots();
        found.extend(
            knots
                .iter()
                .filter_map(|knot| graph.finding(knot, &allowed)),
        );
        let needed: Knot = knots.iter().flatten().cloned().collect();
        for set in &allowed {
            found.extend(stale(tree, name, set, &needed));
        }
    }
    found.extend(listed.keys().map(|name| {
        exception::finding(tree, name, format!("there is no crate `{name}`; remove it"))
    }));
    found
}

/// A listed set that allows more than is needed.
fn stale(tree: &Tree, crate_name: &str, set: &Knot, needed: &Knot) -> Option<TidyFinding> {
    let free: Knot = set.difference(needed).cloned().collect();
    if free.is_empty() {
        return None;
    }
    let free = quoted(&free);
    let sentence = format!("in no cycle any more: {free}; remove it from the list");
    Some(exception::finding(tree, crate_name, sentence))
}

fn quoted(modules: &Knot) -> String {
    let quoted: Vec<String> = modules.iter().map(|module| format!("`{module}`")).collect();
    quoted.join(", ")
}

/// One module that mentions another, and where.
type Step<'a> = (&'a str, &'a str, &'a (String, usize));

/// Who mentions whom, and where first.
#[derive(Debug, Default)]
struct Graph {
    edges: BTreeMap<String, BTreeMap<String, (String, usize)>>,
}

impl Graph {
    fn of(sources: &[SourceFile<'_>]) -> Self {
        let modules: BTreeSet<&str> = sources
            .iter()
            .filter_map(|source| source.module.first().copied())
            .collect();
        let exports = exports(sources, &modules);
        let mut graph = Self::default();
        for source in sources {
            let Some(from) = source.module.first() else {
                continue;
            };
            let inline = inline_modules(&source.tokens);
            for mention in mentions_in(source.tokens.clone()) {
                let Some(name) = name_at_root(&mention, source.module.len(), &inline) else {
                    continue;
                };
                let targets = match modules.get(name) {
                    Some(module) => vec![*module],
                    None => exports.get(name).copied().into_iter().collect(),
                };
                for target in targets.into_iter().filter(|target| target != from) {
                    let place = (source.path.to_owned(), mention.line);
                    let edges = graph.edges.entry((*from).to_owned()).or_default();
                    edges.entry(target.to_owned()).or_insert(place);
                }
            }
        }
        graph
    }

    /// The sets of modules that can all reach each other, larger than one.
    fn knots(&self) -> Vec<Knot> {
        let reached: BTreeMap<&str, BTreeSet<&str>> = self
            .edges
            .keys()
            .map(|module| (module.as_str(), self.reached_from(module)))
            .collect();
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
        let mut knots = BTreeSet::new();
        for module in self.edges.keys().filter(|module| reaches(module, module)) {
            let others = self.edges.keys();
            let knot: Knot = others
                .filter(|other| reaches(module, other) && reaches(other, module))
                .cloned()
                .collect();
            knots.insert(knot);
        }
        knots.into_iter().collect()
    }

    fn reached_from(&self, start: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![start];
        while let Some(module) = waiting.pop() {
            for target in self.edges.get(module).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(target.as_str()) {
                    waiting.push(target);
                }
            }
        }
        reached
    }

    /// What to say about a knot that the lists do not allow: the shortest cycle
    /// through the first module that is new, with one import for each step.
    fn finding(&self, knot: &Knot, allowed: &[Knot]) -> Option<TidyFinding> {
        if allowed.iter().any(|set| knot.is_subset(set)) {
            return None;
        }
        let listed = allowed.iter().find(|set| !set.is_disjoint(knot));
        let start = match listed {
            Some(set) => knot.difference(set).next()?,
            None => knot.first()?,
        };
        let steps = self.shortest_cycle(start);
        let (path, line) = steps.first().map(|(_, _, place)| place)?;
        let shown: Vec<String> = steps
            .iter()
            .map(|(from, to, (path, line))| format!("`{from}` uses `{to}` ({path}:{line})"))
            .collect();
        let what = match listed {
            Some(_) => format!("`{start}` joins a cycle that {LISTS} lists without it"),
            None => "modules form a cycle".to_owned(),
        };
        let whole = match knot.len() > steps.len() {
            true => format!("; in all: {}", quoted(knot)),
            false => String::new(),
        };
        let sentence = format!(
            "{what}: {}{whole}; move the shared code below them",
            shown.join(", ")
        );
        Some(TidyFinding::new(path, *line, sentence))
    }

    fn shortest_cycle<'a>(&'a self, start: &'a str) -> Vec<Step<'a>> {
        let mut came_from: BTreeMap<&str, (&str, &(String, usize))> = BTreeMap::new();
        let mut waiting = VecDeque::from([start]);
        while let Some(module) = waiting.pop_front() {
            for (target, place) in self.edges.get(module).into_iter().flatten() {
                if !came_from.contains_key(target.as_str()) {
                    came_from.insert(target, (module, place));
                    waiting.push_back(target);
                }
            }
        }
        let mut steps = VecDeque::new();
        let mut to = start;
        while let Some((from, place)) = came_from.get(to).copied() {
            steps.push_front((from, to, place));
            if from == start {
                break;
            }
            to = from;
        }
        steps.into()
    }
}

/// The names that a crate's root takes from its modules, and from which.
fn exports<'a>(
    sources: &'a [SourceFile<'_>],
    modules: &BTreeSet<&'a str>,
) -> BTreeMap<String, &'a str> {
    let mut exports = BTreeMap::new();
    for root in sources.iter().filter(|source| source.module.is_empty()) {
        for mention in mentions_in(root.tokens.clone()) {
            let mut segments = mention.segments.iter().map(String::as_str);
            let first = segments.find(|segment| !matches!(*segment, "crate" | "self"));
            let module = first.and_then(|first| modules.get(first));
            let name = mention.alias.as_deref().or(segments.next_back());
            if let (Some(module), Some(name)) = (module, name) {
                exports.insert(name.to_owned(), *module);
            }
        }
    }
    exports
}

/// The first name of a path that starts at the crate's root. `depth` counts the
/// modules around the file, `inline` those around the line within it.
fn name_at_root<'a>(
    mention: &'a Mention,
    depth: usize,
    inline: &[(usize, usize)],
) -> Option<&'a str> {
    let mut segments = mention.segments.iter().map(String::as_str);
    let first = segments.next()?;
    if first == "crate" {
        return segments.next();
    }
    let within = inline
        .iter()
        .filter(|(start, end)| (*start..=*end).contains(&mention.line));
    let mut climb = depth + within.count();
    let mut next = Some(first).filter(|first| matches!(*first, "self" | "super"));
    while let Some("self" | "super") = next {
        climb = climb.saturating_sub(usize::from(next == Some("super")));
        next = segments.next();
    }
    next.filter(|_| climb == 0)
}

/// The first and last lines of modules that are written out in place.
fn inline_modules(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for window in tokens.windows(3).enumerate() {
        let (index, [keyword, _, open]) = window else {
            continue;
        };
        if !keyword.word.is("mod") || open.word != Lexeme::Mark('{') {
            continue;
        }
        let mut depth = 0_usize;
        let end = tokens.iter().skip(index + 2).find(|token| {
            match token.word {
                Lexeme::Mark('{') => depth += 1,
                Lexeme::Mark('}') => depth -= 1,
                Lexeme::Mark(_) | Lexeme::Name(_) | Lexeme::Separator => {}
            }
            depth == 0
        });
        let end = end.map_or(usize::MAX, |token| token.line);
        found.push((keyword.line, end));
    }
    found
}

#[cfg(test)]
mod tests;
