//! May this caller use this tool at all? Denied list, then allowed list, then
//! what the operator grants everybody.

use std::collections::BTreeMap;

use crate::caller::Caller;
use crate::pattern::{NamePattern, first};

/// Who may use what.
///
/// Defaults: nobody is denied anything that is on offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// For everybody.
    pub everyone: Lists,
    /// For one caller, by name in lower case, besides.
    pub callers: BTreeMap<String, Lists>,
}

/// Tools by pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// The only ones; all if absent.
    pub allow: Option<Vec<NamePattern>>,
    /// Never these.
    pub deny: Vec<NamePattern>,
}

/// Why a caller may not use a tool. For the operator; the caller is told that
/// there is no such tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The list and the pattern.
    pub note: String,
}

impl Access {
    /// Whether a caller may use a tool. The answer says which line decided.
    pub fn check(&self, caller: &Caller, tool: &str) -> Result<String, Denied> {
        let own = self.callers.get(&caller.name.to_lowercase());
        let lists = || {
            let own = own.map(|lists| (caller.name.as_str(), lists));
            std::iter::once(("everyone", &self.everyone)).chain(own)
        };
        for (whose, lists) in lists() {
            if let Some(pattern) = first(&lists.deny, tool) {
                let note = format!("denied to {whose} by `{pattern}`");
                return Err(Denied { note });
            }
        }
        let mut note = "no list names it".to_owned();
        for (whose, lists) in lists() {
            match lists.allow.as_deref().map(|allow| first(allow, tool)) {
                None => {}
                Some(Some(pattern)) => note = format!("allowed to {whose} by `{pattern}`"),
                Some(None) => {
                    let note = format!("not among the tools allowed to {whose}");
                    return Err(Denied { note });
                }
            }
        }
        Ok(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(allow: Option<&[&str]>, deny: &[&str]) -> Lists {
        let parse = |words: &[&str]| {
            let parse = |word: &&str| NamePattern::parse(word).expect("a pattern");
            words.iter().map(parse).collect::<Vec<_>>()
        };
        Lists {
            allow: allow.map(parse),
            deny: parse(deny),
        }
    }

    #[track_caller]
    fn check(everyone: &Lists, own: Option<&Lists>, expected: Result<&str, &str>) {
        let own = own.map(|lists| ("ann".to_owned(), lists.clone()));
        let access = Access {
            everyone: everyone.clone(),
            callers: own.into_iter().collect(),
        };
        let answer = access.check(&Caller::named("Ann"), "readFile");
        let answer = answer.as_deref().map_err(|denied| denied.note.as_str());
        assert_eq!(answer, expected);
    }

    #[test]
    fn deny_wins_and_an_allow_list_is_closed() {
        let open = Lists::default();
        check(&open, None, Ok("no list names it"));
        check(
            &lists(None, &["*"]),
            Some(&lists(Some(&["*"]), &[])),
            Err("denied to everyone by `*`"),
        );
        check(
            &open,
            Some(&lists(Some(&["read*"]), &["*File"])),
            Err("denied to Ann by `*File`"),
        );
        check(
            &open,
            Some(&lists(Some(&["READ*"]), &[])),
            Ok("allowed to Ann by `READ*`"),
        );
        check(
            &lists(Some(&["web.*"]), &[]),
            None,
            Err("not among the tools allowed to everyone"),
        );
        // A caller's own list narrows what everybody has; it does not widen it.
        check(
            &lists(Some(&["web.*"]), &[]),
            Some(&lists(Some(&["read*"]), &[])),
            Err("not among the tools allowed to everyone"),
        );
        check(
            &open,
            Some(&lists(Some(&[]), &[])),
            Err("not among the tools allowed to Ann"),
        );
    }
}
