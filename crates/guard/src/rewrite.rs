//! Layer 2: the script as it is run.
//!
//! Insertions only, none of which holds a line break, so that line 7 of the script
//! is line 7 of what runs; `Map` takes columns back. The script becomes the body of
//! `__ag_main`; every turn of a loop counts against one budget; computed keys go
//! through the key guard; the runtime's names get their prefix; a last expression
//! is returned.

use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, Program, Statement};
use oxc_span::{GetSpan as _, Span};

use crate::calls::CallSite;
use crate::names::Names;
use crate::preset::{Globals, Preset, RUNTIME_FUNCTIONS};
use crate::runtime::{GUARD_KEY, MAIN, SAFE, TURN};

/// A script that passed, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The body of an async function; calls what [`crate::runtime`] lists.
    pub code: String,
    /// Takes places in `code` back to the script.
    pub map: Map,
    /// Where the script calls tools, in its order.
    pub calls: Vec<CallSite>,
}

impl Prepared {
    /// Puts definitions before the code, on its first line.
    ///
    /// # Errors
    /// If the definitions hold a line break: the author's lines would move.
    pub fn with_prelude(mut self, prelude: &str) -> Result<Prepared, LineBreak> {
        // Places in errors are by line, so no text of ours may add one.
        if prelude.contains(['\n', '\r', '\u{2028}', '\u{2029}']) {
            return Err(LineBreak);
        }
        self.code.insert_str(0, prelude);
        self.map.shift_first_line(prelude.chars().count());
        Ok(self)
    }
}

/// A prelude that has more than one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineBreak;

impl std::fmt::Display for LineBreak {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the prelude of a script must be one line")
    }
}

impl std::error::Error for LineBreak {}

/// Takes places in rewritten code back to the script as its author wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// In the order of the code.
    pieces: Vec<Piece>,
    lines: usize,
    last_column: usize,
    /// Characters of what was put before the script, on its first line.
    prelude: usize,
}

/// From here on columns differ by so much, up to the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    line: usize,
    column: usize,
    author_column: usize,
    /// Text of ours: all of it maps to one place of the author's.
    is_ours: bool,
}

impl Map {
    /// The author's line and column of a line and column of the code, all from 1,
    /// columns in characters.
    #[must_use]
    pub fn author(&self, line: usize, column: usize) -> (usize, usize) {
        if line > self.lines {
            return (self.lines.max(1), self.last_column.max(1));
        }
        let after = self
            .pieces
            .partition_point(|piece| (piece.line, piece.column) <= (line, column));
        let piece = after
            .checked_sub(1)
            .and_then(|index| self.pieces.get(index));
        match piece.filter(|piece| piece.line == line) {
            None => (line, column),
            Some(piece) if piece.is_ours => (line, piece.author_column),
            Some(piece) => (
                line,
                piece.author_column + column.saturating_sub(piece.column),
            ),
        }
    }

    /// Whether a place of the code is in the prelude, and so no place of the author's.
    #[must_use]
    pub fn is_prelude(&self, line: usize, column: usize) -> bool {
        line == 1 && column <= self.prelude
    }

    fn shift_first_line(&mut self, by: usize) {
        self.prelude += by;
        for piece in self.pieces.iter_mut().take_while(|piece| piece.line == 1) {
            piece.column += by;
        }
        self.pieces.insert(
            0,
            Piece {
                line: 1,
                column: 1,
                author_column: 1,
                is_ours: true,
            },
        );
    }
}

/// Rewrites a script that passed the rules.
pub(crate) fn rewrite<'a>(
    source: &str,
    program: &Program<'a>,
    names: &Names<'a>,
    preset: &Preset,
) -> Prepared {
    let mut edits = Edits(Vec::new());
    match (program.body.last(), program.directives.last()) {
        (Some(Statement::ExpressionStatement(last)), _) => {
            edits.insert(last.span.start, String::from("return "));
        }
        // A lone string parses as a directive, but is the last expression too.
        (None, Some(last)) => edits.insert(last.span.start, String::from("return ")),
        _ => {}
    }
    for node in &names.nodes {
        edits.node(*node);
    }
    edits.names(names, preset);
    let mut edits = edits.0;
    // Stable: of two edits at one place the outer one was noted first,
    // and is written first.
    edits.sort_by_key(|edit| edit.at);
    write(source, &edits)
}

#[derive(Debug)]
struct Edit {
    at: usize,
    remove: usize,
    text: String,
}

struct Edits(Vec<Edit>);

impl Edits {
    fn insert(&mut self, at: u32, text: String) {
        self.0.push(Edit {
            at: usize::try_from(at).unwrap_or(0),
            remove: 0,
            text,
        });
    }

    /// Counts a turn of a loop. A body without braces gets some.
    fn turn(&mut self, body: &Statement<'_>) {
        let span = body.span();
        if matches!(body, Statement::BlockStatement(_)) {
            // Inside the braces, so that a `continue` cannot pass over it.
            self.insert(span.start + 1, format!("{TURN}();"));
            return;
        }
        self.insert(span.start, format!("{{{TURN}();"));
        self.insert(span.end, String::from("}"));
    }

    fn key(&mut self, key: &Expression<'_>) {
        let is_plain = matches!(
            key,
            Expression::NumericLiteral(_) | Expression::StringLiteral(_)
        );
        // A literal was judged by the rules already.
        if is_plain {
            return;
        }
        // Two pairs: a list with commas is one key, not many arguments.
        let Span { start, end, .. } = key.span();
        self.insert(start, format!("{GUARD_KEY}(("));
        self.insert(end, String::from("))"));
    }

    fn names(&mut self, names: &Names<'_>, preset: &Preset) {
        if !preset.is_agent_script {
            return;
        }
        let known: &[&str] = match &preset.globals {
            Globals::Any => &[],
            Globals::Only(known) => known,
        };
        for reference in names
            .references
            .iter()
            .filter(|reference| reference.binding.is_none())
        {
            let name = reference.name;
            let is_extra = preset.extra_globals.iter().any(|extra| extra == name);
            if RUNTIME_FUNCTIONS.contains(&name) || is_extra {
                let text = match reference.is_shorthand {
                    true => format!("{name}: {SAFE}"),
                    false => String::from(SAFE),
                };
                self.insert(reference.span.start, text);
                continue;
            }
            // `typeof x` of an undeclared name: a global of the sandbox with that name
            // must not show.
            if reference.is_typeof && !known.contains(&name) {
                self.0.push(Edit {
                    at: usize::try_from(reference.span.start).unwrap_or(0),
                    remove: usize::try_from(reference.span.size()).unwrap_or(0),
                    text: String::from("undefined"),
                });
            }
        }
    }

    fn node(&mut self, kind: AstKind<'_>) {
        match kind {
            AstKind::ForStatement(statement) => self.turn(&statement.body),
            AstKind::ForOfStatement(statement) => self.turn(&statement.body),
            AstKind::ForInStatement(statement) => self.turn(&statement.body),
            AstKind::WhileStatement(statement) => self.turn(&statement.body),
            AstKind::DoWhileStatement(statement) => self.turn(&statement.body),
            AstKind::ComputedMemberExpression(member) => self.key(&member.expression),
            AstKind::ObjectProperty(property) if property.computed => {
                if let Some(key) = property.key.as_expression() {
                    self.key(key);
                }
            }
            AstKind::BindingProperty(property) if property.computed => {
                if let Some(key) = property.key.as_expression() {
                    self.key(key);
                }
            }
            AstKind::AssignmentTargetPropertyProperty(property) if property.computed => {
                if let Some(key) = property.name.as_expression() {
                    self.key(key);
                }
            }
            _ => {}
        }
    }
}

/// Writes the code and notes where its columns leave the author's.
fn write(source: &str, edits: &[Edit]) -> Prepared {
    let head = format!("async function {MAIN}(){{\"use strict\";");
    let mut writer = Writer {
        code: String::with_capacity(source.len() * 2),
        pieces: Vec::new(),
        line: 1,
        column: 1,
        author_column: 1,
    };
    writer.ours(&head);
    let mut from = 0;
    for edit in edits {
        writer.authors(source.get(from..edit.at).unwrap_or(""));
        writer.ours(&edit.text);
        from = edit.at + edit.remove;
        writer.skip(source.get(edit.at..from).unwrap_or(""));
    }
    writer.authors(source.get(from..).unwrap_or(""));
    let (lines, last_column) = (writer.line, writer.author_column);
    // A line of its own: the script may end in a comment.
    writer.code.push_str("\n}\nreturn ");
    writer.code.push_str(MAIN);
    writer.code.push_str("();");
    Prepared {
        code: writer.code,
        map: Map {
            pieces: writer.pieces,
            lines,
            last_column,
            prelude: 0,
        },
        calls: Vec::new(),
    }
}

struct Writer {
    code: String,
    pieces: Vec<Piece>,
    line: usize,
    column: usize,
    author_column: usize,
}

impl Writer {
    fn piece(&mut self, is_ours: bool) {
        self.pieces.push(Piece {
            line: self.line,
            column: self.column,
            author_column: self.author_column,
            is_ours,
        });
    }

    fn ours(&mut self, text: &str) {
        self.piece(true);
        self.code.push_str(text);
        self.column += text.chars().count();
        self.piece(false);
    }

    fn authors(&mut self, text: &str) {
        self.code.push_str(text);
        for character in text.chars() {
            if character == '\n' {
                self.line += 1;
                self.column = 1;
                self.author_column = 1;
            } else {
                self.column += 1;
                self.author_column += 1;
            }
        }
    }

    /// Text of the author's that is not in the code; never a line break.
    fn skip(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.author_column += text.chars().count();
        self.piece(false);
    }
}

#[cfg(test)]
mod tests;
