//! The three layers in their order: the scan of the raw text, the rules on the tree, and
//! the rewriting for the run.

use std::cell::Cell;

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::SourceType;

use crate::calls;
use crate::code::IssueCode;
use crate::names::Names;
use crate::preset::{Preset, PresetLevel};
use crate::report::{Marks, Report};
use crate::rewrite::{self, Prepared};
use crate::{rules, scan};

/// Judges a script.
#[must_use]
pub fn check(source: &str, preset: &Preset) -> Report {
    let mut marks = Marks::default();
    // A fatal scan keeps the text from the parser: its depth or its reading could hurt it.
    if !scan::scan(source, preset, &mut marks).is_fatal {
        in_arena(|arena| {
            let parsed = parse(arena, source, &mut marks);
            if !parsed.panicked {
                let names = Names::of(&parsed.program, &mut marks);
                rules::judge(&parsed.program, &names, preset, &mut marks);
                note_dropped(&calls::sites(&parsed.program, &names, preset), &mut marks);
            }
        });
    }
    marks.report(source)
}

/// Judges a script and makes it ready to run.
///
/// # Errors The findings, if any of them is an error.
pub fn prepare(source: &str, preset: &Preset) -> Result<Prepared, Report> {
    let mut marks = Marks::default();
    if scan::scan(source, preset, &mut marks).is_fatal {
        return Err(marks.report(source));
    }
    in_arena(|arena| {
        let parsed = parse(arena, source, &mut marks);
        if parsed.panicked {
            return Err(marks.report(source));
        }
        let names = Names::of(&parsed.program, &mut marks);
        rules::judge(&parsed.program, &names, preset, &mut marks);
        let sites = calls::sites(&parsed.program, &names, preset);
        if marks.has_errors() {
            note_dropped(&sites, &mut marks);
            return Err(marks.report(source));
        }
        let mut prepared = rewrite::rewrite(source, &parsed.program, &names, preset);
        prepared.calls = calls::place(source, sites);
        Ok(prepared)
    })
}

/// Calls of tools that are not awaited.
fn note_dropped(sites: &[calls::Site], marks: &mut Marks) {
    for site in sites.iter().filter(|site| site.is_dropped) {
        marks.warning(IssueCode::UnawaitedCall, site.at, || {
            String::from(
                "this call is not awaited: it is stopped when the script ends, and its errors are lost; write `await`, \
                 and `for … of` or `parallel` in place of `forEach`",
            )
        });
    }
}

/// Memory for trees that a thread keeps between scripts, in bytes.
const ARENA_KEPT_MAX: usize = 2 << 20;

/// Lends the thread's memory for trees. Asking the system for it each time costs a tenth of
/// a judgement.
fn in_arena<T>(judge: impl FnOnce(&Allocator) -> T) -> T {
    thread_local! {
        static KEPT: Cell<Option<Allocator>> = const { Cell::new(None) };
    }
    let mut arena = KEPT.take().unwrap_or_default();
    let judged = judge(&arena);
    // A hostile script must not leave its thread with a large arena.
    if arena.capacity() <= ARENA_KEPT_MAX {
        arena.reset();
        KEPT.set(Some(arena));
    }
    judged
}

/// A script is the body of an async function: `await` and `return` are allowed at its
/// top level. Read as a module, so that it is strict and `await` is always a keyword.
fn parse<'a>(allocator: &'a Allocator, source: &'a str, marks: &mut Marks) -> ParserReturn<'a> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        // Parentheses would be nodes of their own, which every rule would
        // have to look through.
        preserve_parens: false,
        enable_ident_hashes: false,
        parse_regular_expression: true,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(allocator, source, SourceType::mjs())
        .with_options(options)
        .parse();
    for diagnostic in &parsed.diagnostics {
        let offset = diagnostic.labels.first().map_or(0, |label| label.offset());
        // A place of the parser's own is bounded too: the report counts columns from it.
        let at = usize::try_from(offset).unwrap_or(0).min(source.len());
        marks.error(IssueCode::ParseError, at, || {
            let message = model::text::elided(&diagnostic.message, 200);
            let message = message.trim_end_matches('.');
            let mut letters = message.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_lowercase().chain(letters).collect()
            })
        });
    }
    parsed
}

/// Any text at all, for the fuzzer and for the test that runs its seeds: no panic,
/// places inside the script, and what is prepared has the lines of the script.
///
/// # Panics
/// If one of these does not hold.
pub fn fuzz(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    let presets = [
        Preset::agent_script(PresetLevel::Secure),
        Preset::agent_script(PresetLevel::Permissive),
        Preset::strict(),
        Preset::permissive(),
    ];
    let lines = source.bytes().filter(|byte| *byte == b'\n').count() + 1;
    for preset in presets {
        let report = check(&source, &preset);
        for issue in &report.issues {
            assert!(
                issue.line >= 1 && issue.line <= lines,
                "{issue:?} is outside"
            );
            assert!(
                issue.column >= 1 && issue.column <= source.len() + 1,
                "{issue:?} is outside"
            );
            assert!(
                !issue.message.contains('\n'),
                "{issue:?} has more than one line"
            );
        }
        match prepare(&source, &preset) {
            Ok(prepared) => {
                assert!(report.valid, "a script was prepared that is refused");
                let last = prepared.map.author(lines, usize::MAX / 2);
                assert!(last.0 <= lines, "the map leads outside");
            }
            Err(refused) => assert_eq!(refused, report, "check and prepare differ"),
        }
    }
}
