//! The state of a document: draft, waiting for a variable, or ready.

use serde::Serialize;

use crate::document::Document;
use crate::document::environment::Environment;
use crate::document::placeholder;
use crate::document::safety::Source;

/// The state of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LifecycleState {
    /// It has not passed its Local Pass, or was edited since.
    Draft,
    /// It has, but a variable it needs is not set.
    MissingRequirements,
    /// It can be called.
    Active,
    /// Its last Local Pass failed. Reserved: only a store that remembers test
    /// runs can say so.
    TestFailed,
}

impl LifecycleState {
    /// The word of the specification.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            LifecycleState::Draft => "DRAFT",
            LifecycleState::MissingRequirements => "MISSING_REQUIREMENTS",
            LifecycleState::Active => "ACTIVE",
            LifecycleState::TestFailed => "TEST_FAILED",
        }
    }
}

/// The variables a document needs and the environment lacks, in order, once each.
#[must_use]
pub fn missing(document: &Document, environment: &Environment) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    for name in requirements(document) {
        if environment.get(name).is_none() && !missing.iter().any(|known| known == name) {
            missing.push(name.to_owned());
        }
    }
    missing
}

/// Every variable a document names, in order, repeats included.
pub fn requirements(document: &Document) -> impl Iterator<Item = &str> {
    document
        .static_variables
        .iter()
        .flat_map(|variable| placeholder::names(&variable.template))
}

/// The state of a document from a file: a draft, whatever it says of itself. Only the
/// store knows what was published. Bundled documents are published.
#[must_use]
pub fn state(document: &Document, environment: &Environment, source: Source) -> LifecycleState {
    match source {
        Source::User => LifecycleState::Draft,
        Source::Builtin | Source::Server if missing(document, environment).is_empty() => {
            LifecycleState::Active
        }
        Source::Builtin | Source::Server => LifecycleState::MissingRequirements,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    #[track_caller]
    fn check(
        source: Source,
        set: &[(&str, &str)],
        expected: LifecycleState,
        expected_missing: &[&str],
    ) {
        for draft in ["", r#""draft":true,"#, r#""draft":false,"#] {
            let text = format!(
                r#"{{"name":"a","code":"","codeType":"Javascript",{draft}
                "staticVariables":[{{"key":"${{KEY}}"}},{{"url":"https://${{HOST}}/${{KEY}}"}},{{"plain":"${{no}}"}}]}}"#
            );
            let document = parse(&text)
                .items
                .pop()
                .and_then(|item| item.document)
                .expect("a document");
            let environment: Environment = set.iter().copied().collect();
            assert_eq!(state(&document, &environment, source), expected, "{draft}");
            assert_eq!(missing(&document, &environment), expected_missing);
        }
    }

    #[test]
    fn a_file_is_a_draft_whatever_it_says_and_whatever_is_set() {
        let set = [("KEY", "k"), ("HOST", "h")];
        check(Source::User, &set, LifecycleState::Draft, &[]);
        check(Source::User, &[], LifecycleState::Draft, &["KEY", "HOST"]);
    }

    #[test]
    fn unset_empty_and_blank_are_missing() {
        let needs = LifecycleState::MissingRequirements;
        check(Source::Builtin, &[], needs, &["KEY", "HOST"]);
        let blank = [("KEY", "k"), ("HOST", " \t")];
        check(Source::Builtin, &blank, needs, &["HOST"]);
        let empty = [("KEY", ""), ("HOST", "h")];
        check(Source::Builtin, &empty, needs, &["KEY"]);
        let set = [("KEY", "k"), ("HOST", "h")];
        check(Source::Builtin, &set, LifecycleState::Active, &[]);
    }
}
