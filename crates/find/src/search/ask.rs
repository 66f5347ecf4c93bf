//! The arguments of a search, and the combined results of its queries.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Index, View};
use crate::limit;
use model::document::params::ArgumentFault;
use model::limits;
use model::reason::Reason;
use model::text::{count, elided};

/// The score below which a tool is left out by default.
pub const SCORE_MIN_DEFAULT: f64 = 0.1;

/// The arguments of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchRequest {
    /// Each is searched separately.
    pub queries: Vec<String>,
    /// Only tools of these apps; of all if empty.
    pub app_ids: Vec<String>,
    /// Tools that are left out.
    pub exclude: Vec<String>,
    /// Tools for each query.
    pub top: usize,
    /// The score a tool must reach.
    pub score_min: f64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAnswer {
    /// Best first; equals by name.
    pub tools: Vec<MatchedTool>,
    /// Warnings for the caller.
    pub warnings: Vec<Warning>,
    /// How many tools the caller may use at all.
    pub total: usize,
}

/// A tool that answers some query.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchedTool {
    /// Its name.
    pub name: String,
    /// Its best score.
    pub score: f64,
    /// The queries it answers.
    pub queries: Vec<String>,
}

/// A warning for the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// Which kind.
    #[serde(rename = "type")]
    pub kind: WarningKind,
    /// In a sentence.
    pub message: String,
    /// Names it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affected_tools: Vec<String>,
    /// Words it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// The kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// An excluded tool does not exist.
    ExcludedToolNotFound,
    /// A query found nothing.
    NoResults,
    /// Some tools were left out for their scores.
    LowRelevance,
    /// Some words are in no tool.
    UnmatchedWords,
}

impl SearchRequest {
    /// Reads the arguments of a search, all problems together. `top_default` is the
    /// operator's setting.
    pub fn read(
        arguments: &Map<String, Value>,
        top_default: u64,
    ) -> Result<SearchRequest, Vec<ArgumentFault>> {
        let mut faults = Vec::new();
        let queries = strings(arguments, "queries", &mut faults);
        let (chars_min, chars_max) = (limit::SEARCH_QUERY_CHARS_MIN, limit::SEARCH_QUERY_CHARS_MAX);
        let fits = |query: &String| (chars_min..=chars_max).contains(&query.trim().chars().count());
        if !faults.is_empty() {
            // A value that is not a list of strings is not counted.
        } else if queries.is_empty() || queries.len() > limit::SEARCH_QUERIES_MAX {
            let most = limit::SEARCH_QUERIES_MAX;
            let message = format!("`queries` holds {}; give 1 to {most}", queries.len());
            faults.push(fault("queries", message));
        } else if let Some(query) = queries.iter().find(|query| !fits(query)) {
            let message = format!(
                "the query `{}` must have {chars_min} to {chars_max} characters",
                elided(query, 40)
            );
            faults.push(fault("queries", message));
        }
        let app_ids = strings(arguments, "appIds", &mut faults);
        bounded("appIds", app_ids.len(), limit::SEARCH_APPS_MAX, &mut faults);
        let exclude = strings(arguments, "excludeToolNames", &mut faults);
        let excluded_max = limit::SEARCH_EXCLUDED_MAX;
        bounded("excludeToolNames", exclude.len(), excluded_max, &mut faults);
        let top = arguments
            .get("topK")
            .map_or(Some(top_default), Value::as_u64);
        let top = top.filter(|top| (1..=limits::SEARCH_TOP_MAX).contains(top));
        if top.is_none() {
            let message = format!("`topK` must be 1 to {}", limits::SEARCH_TOP_MAX);
            faults.push(fault("topK", message));
        }
        let given = arguments.get("minRelevanceScore");
        let score_min = given.map_or(Some(SCORE_MIN_DEFAULT), Value::as_f64);
        let score_min = score_min.filter(|score| (0.0..=1.0).contains(score));
        if score_min.is_none() {
            let message = "`minRelevanceScore` must be a number from 0 to 1".to_owned();
            faults.push(fault("minRelevanceScore", message));
        }
        match (top, score_min) {
            (Some(top), Some(score_min)) if faults.is_empty() => Ok(SearchRequest {
                queries,
                app_ids,
                exclude,
                top: usize::try_from(top).unwrap_or(usize::MAX),
                score_min,
            }),
            _ => Err(faults),
        }
    }

    /// Runs the search. `all` is the caller's view; `narrowed` is that view without the
    /// tools that the search itself excludes.
    #[must_use]
    pub fn answer(&self, index: &Index, all: &View, narrowed: &View) -> SearchAnswer {
        let mut tools: Vec<MatchedTool> = Vec::new();
        let mut warnings = Vec::new();
        self.missing(index, all, &mut warnings);
        let mut below = 0;
        for query in &self.queries {
            let found = index.search(narrowed, query, self.top, self.score_min);
            if found.hits.is_empty() {
                warnings.push(nothing(query, found.below, narrowed.count()));
            } else {
                below += found.below;
            }
            if !found.unmatched.is_empty() {
                warnings.push(unmatched(query, found.unmatched));
            }
            for hit in found.hits {
                match tools.iter_mut().find(|tool| tool.name == hit.name) {
                    Some(tool) => {
                        tool.score = tool.score.max(hit.score);
                        tool.queries.push(query.clone());
                    }
                    None => tools.push(MatchedTool {
                        name: hit.name,
                        score: hit.score,
                        queries: vec![query.clone()],
                    }),
                }
            }
        }
        tools.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.name.cmp(&b.name))
        });
        if below > 0 && !tools.is_empty() {
            let left = count(below, "weaker hit");
            let message = format!(
                "{left} left out; lower minRelevanceScore ({}) to see more",
                self.score_min
            );
            warnings.push(Warning::new(WarningKind::LowRelevance, message));
        }
        SearchAnswer {
            tools,
            warnings,
            total: all.count(),
        }
    }

    /// Excluded names that do not exist for the caller.
    fn missing(&self, index: &Index, all: &View, warnings: &mut Vec<Warning>) {
        // Among what the caller may see: otherwise the warning would tell of hidden tools.
        let unknown = |name: &&String| !index.has(all, name);
        let missing: Vec<_> = self.exclude.iter().filter(unknown).cloned().collect();
        if missing.is_empty() {
            return;
        }
        let message = "some tools to be left out are not there".to_owned();
        let mut warning = Warning::new(WarningKind::ExcludedToolNotFound, message);
        warning.affected_tools = missing.iter().map(|name| elided(name, 128)).collect();
        warnings.push(warning);
    }
}

impl Warning {
    fn new(kind: WarningKind, message: String) -> Warning {
        Warning {
            kind,
            message,
            affected_tools: Vec::new(),
            words: Vec::new(),
        }
    }
}

fn nothing(query: &str, below: usize, seen: usize) -> Warning {
    let query = elided(query, 80);
    let message = if below > 0 {
        format!(
            "no tool fits `{query}` well enough; {below} fit a little, lower minRelevanceScore to see them"
        )
    } else {
        let among = count(seen, "tool");
        format!("no tool fits `{query}`; looked through {among}, try other words")
    };
    Warning::new(WarningKind::NoResults, message)
}

fn unmatched(query: &str, words: Vec<String>) -> Warning {
    let message = format!(
        "no tool knows these words of `{}`: {}",
        elided(query, 80),
        elided(&words.join(", "), 200)
    );
    let mut warning = Warning::new(WarningKind::UnmatchedWords, message);
    warning.words = words;
    warning
}

/// A list of strings; absent means empty.
pub fn strings(
    arguments: &Map<String, Value>,
    name: &str,
    faults: &mut Vec<ArgumentFault>,
) -> Vec<String> {
    let items = match arguments.get(name) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => &[Value::Null],
    };
    let texts = items.iter().map(Value::as_str);
    match texts.collect::<Option<Vec<_>>>() {
        Some(texts) => texts.into_iter().map(str::to_owned).collect(),
        None => {
            faults.push(fault(name, format!("`{name}` must be an array of strings")));
            Vec::new()
        }
    }
}

fn bounded(name: &str, length: usize, max: usize, faults: &mut Vec<ArgumentFault>) {
    if length > max {
        let message = format!("`{name}` holds {length}; give at most {max}");
        faults.push(fault(name, message));
    }
}

fn fault(name: &str, message: String) -> ArgumentFault {
    ArgumentFault {
        reason: Reason::ArgumentType,
        name: name.to_owned(),
        message,
    }
}
