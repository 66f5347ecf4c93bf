//! Instructions for the model before its first call: how calls end here, and the tools
//! that help with others. They mention only tools of its own list, and never how to
//! approve.

use engine::native::Native;

const CALLS: &str = "Every call is checked against the operator's rules and recorded. \
    A call that is refused or fails says why, with a `code` and whether it is `retryable`; \
    where it is not, the same call fails again.";
const APPROVALS: &str = "Some calls wait for a person. The code `approval.pending` means that \
    a person has been asked and nothing ran: tell the user so, and make the same call with the \
    same arguments again later. Do not try to reach the same end another way.";
const SCRIPTS: &str = "To use several tools in one step, run a script with `codecall_execute`: \
    it calls tools with `await callTool(name, args)` and returns one result.";
const SEARCH: &str = "`codecall_search` finds tools by what they do, also some that are not \
    listed.";
const DESCRIBE: &str = "`codecall_describe` tells their arguments.";
const PROGRESSIVE: &str = "The list is short on purpose: `list_tools` names the tools there are \
    and `load_tool` shows one in full. Every one of them can be called by its name.";

/// The instructions for a caller whose list has these tools of ours.
pub(crate) fn of(has: &dyn Fn(Native) -> bool) -> String {
    let parts = [
        (true, CALLS),
        (true, APPROVALS),
        (has(Native::Execute), SCRIPTS),
        (has(Native::Search), SEARCH),
        (has(Native::Describe), DESCRIBE),
        (has(Native::List) && has(Native::Load), PROGRESSIVE),
    ];
    let said = parts.into_iter().filter(|(is_said, _)| *is_said);
    let said: Vec<_> = said.map(|(_, sentence)| sentence).collect();
    said.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_mention_only_listed_tools() {
        let none = of(&|_| false);
        assert!(none.contains("approval.pending"), "{none}");
        assert!(!none.contains("codecall") && !none.contains("load_tool"));
        let all = of(&|_| true);
        for native in [
            Native::Execute,
            Native::Search,
            Native::Describe,
            Native::List,
            Native::Load,
        ] {
            assert!(all.contains(native.name()), "{all}");
        }
        let search = of(&|native| native == Native::Search);
        assert!(search.contains("codecall_search") && !search.contains("codecall_execute"));
    }

    /// The reader is the caller whose calls need approval.
    #[test]
    fn instructions_never_say_how_to_approve() {
        let all = of(&|_| true);
        for word in ["ringfence approvals", "approve ", "keys add", "--yes"] {
            assert!(!all.contains(word), "{word}");
        }
    }
}
