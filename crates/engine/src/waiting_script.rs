//! A script one of whose calls asks a person: its text and the lines that make such a call,
//! so that the person sees what the call is a part of. It is shown and decides nothing.

use std::sync::Mutex;

use guard::CallSite;
use model::record::mask::Masker;
use model::sync::lock;
use model::text;
use serde::{Deserialize, Serialize};
use store::{Store, StoreError};

/// A script while it runs. Its text is written down when the first of its calls asks.
#[derive(Debug)]
pub struct RunningScript {
    call_id: String,
    kept: Mutex<KeptScript>,
}

/// As it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptScript {
    script: String,
    calls: Vec<KeptCall>,
    #[serde(skip)]
    is_written: bool,
}

/// A place where the script calls a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptCall {
    /// Absent if it is not written out.
    tool: Option<String>,
    line: usize,
}

/// The script that a question comes from, as a person sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AskingScript {
    /// Its lines, the first is number 1.
    pub lines: Vec<String>,
    /// The numbers of the lines that make such a call: the one that waits, if there is one,
    /// and otherwise those it is among.
    pub waits: Vec<usize>,
}

impl RunningScript {
    /// `target` says which tool a name that the script uses stands for.
    pub(crate) fn new<'t>(
        call_id: &str,
        script: &str,
        sites: &[CallSite],
        target: impl Fn(&str) -> Option<&'t str>,
    ) -> RunningScript {
        let call = |site: &CallSite| KeptCall {
            tool: site
                .tool
                .as_deref()
                .map(|name| target(name).unwrap_or(name).to_owned()),
            line: site.line,
        };
        RunningScript {
            call_id: call_id.to_owned(),
            kept: Mutex::new(KeptScript {
                script: script.to_owned(),
                calls: sites.iter().map(call).collect(),
                is_written: false,
            }),
        }
    }

    /// Writes it down for the person who is about to be asked about one of its calls.
    /// Secrets of the tool that asks are masked, as in its arguments.
    pub(crate) fn keep(
        &self,
        store: &Store,
        masker: &Masker,
        call_id: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut kept = lock(&self.kept);
        kept.script = masker.text(&kept.script).into_inner();
        let text = serde_json::to_string(&*kept).unwrap_or_default();
        // Before it is tried: what may have been written is forgotten at the end.
        kept.is_written = true;
        let of = (self.call_id.as_str(), call_id);
        store.waiting_scripts().keep(of, &text, now_ms)
    }

    /// It ended: no question of it waits.
    pub(crate) fn forget(&self, store: &Store) -> Result<(), StoreError> {
        store.waiting_scripts().forget(&self.call_id)
    }

    /// Whether it was written down.
    pub(crate) fn is_written(&self) -> bool {
        lock(&self.kept).is_written
    }
}

impl AskingScript {
    /// Which line waits, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let all = text::count(self.lines.len(), "line");
        match self.waits.as_slice() {
            [] => format!("a script of {all}; the line that waits is not known"),
            [one] => format!("line {one} of a script of {all} waits"),
            several => {
                let numbers: Vec<_> = several.iter().map(ToString::to_string).collect();
                let numbers = numbers.join(", ");
                format!("one of the lines {numbers} of a script of {all} waits")
            }
        }
    }
}

/// The script that made this call of `tool`, which asks. A text that cannot be read leaves
/// the question without its lines.
pub(crate) fn find(store: &Store, call_id: &str, tool: &str) -> Option<AskingScript> {
    let text = store.waiting_scripts().find(call_id).ok()??;
    let kept: KeptScript = serde_json::from_str(&text).ok()?;
    Some(kept.asking(tool))
}

impl KeptScript {
    fn asking(&self, tool: &str) -> AskingScript {
        let named = |call: &&KeptCall| call.tool.as_deref() == Some(tool);
        let open = |call: &&KeptCall| call.tool.is_none();
        let mut waits: Vec<_> = self.calls.iter().filter(named).collect();
        // A name that is computed may be any, also this one.
        waits.extend(self.calls.iter().filter(open));
        let mut waits: Vec<_> = waits.into_iter().map(|call| call.line).collect();
        waits.sort_unstable();
        waits.dedup();
        AskingScript {
            lines: self.script.lines().map(str::to_owned).collect(),
            waits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(tool: Option<&str>, line: usize) -> CallSite {
        CallSite {
            tool: tool.map(str::to_owned),
            line,
            column: 1,
            is_dropped: false,
        }
    }

    #[test]
    fn the_lines_that_may_wait_are_those_that_call_the_tool() {
        let target = |name: &str| (name == "files.write").then_some("writeTextFile");
        let sites = [
            site(Some("files.write"), 3),
            site(Some("countWords"), 1),
            site(Some("files.write"), 3),
        ];
        let script = RunningScript::new("0192", "a\nb\nc", &sites, target);
        let kept = lock(&script.kept).clone();
        assert_eq!(kept.asking("writeTextFile").waits, [3]);
        assert_eq!(kept.asking("countWords").waits, [1]);
        assert_eq!(kept.asking("countWords").lines, ["a", "b", "c"]);
        assert!(kept.asking("another").waits.is_empty());
        // A name that is computed may be this one.
        let sites = [site(Some("countWords"), 1), site(None, 2)];
        let script = RunningScript::new("0192", "a\nb", &sites, |_| None);
        let kept = lock(&script.kept).clone();
        assert_eq!(kept.asking("countWords").waits, [1, 2]);
        assert_eq!(
            kept.asking("countWords").words(),
            "one of the lines 1, 2 of a script of 2 lines waits"
        );
        assert_eq!(
            kept.asking("hash").words(),
            "line 2 of a script of 2 lines waits"
        );
    }
}
