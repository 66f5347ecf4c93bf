//! Refused loops, endless loops, and unreachable code.

use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, Statement};
use oxc_span::{GetSpan as _, Span};

use super::Rules;
use crate::code::IssueCode;

impl<'a> Rules<'_, 'a> {
    pub(super) fn loops(&mut self, kind: AstKind<'a>) {
        let loops = self.preset.loops;
        let (is_allowed, word, instead) = match kind {
            AstKind::ForStatement(_) => (loops.plain, "for", "use `map` or `filter`"),
            AstKind::ForOfStatement(statement) => {
                if statement.r#await && !self.preset.is_async {
                    self.error(IssueCode::NoAwait, statement.span, || {
                        String::from("`await` is not allowed here")
                    });
                }
                (loops.of, "for … of", "use `map` or `filter`")
            }
            AstKind::ForInStatement(_) => (
                loops.r#in,
                "for … in",
                "use `for (const key of Object.keys(object))`",
            ),
            AstKind::WhileStatement(_) => (loops.r#while, "while", "use `for` with a counter"),
            AstKind::DoWhileStatement(_) => {
                (loops.r#while, "do … while", "use `for` with a counter")
            }
            _ => return,
        };
        let span = kind.span();
        if !is_allowed {
            self.error(IssueCode::ForbiddenLoop, span, || {
                format!("`{word}` loops are not allowed here; {instead}")
            });
        }
        match kind {
            AstKind::ForStatement(statement) => self.endless(statement.test.as_ref(), span),
            AstKind::WhileStatement(statement) => self.endless(Some(&statement.test), span),
            AstKind::DoWhileStatement(statement) => self.endless(Some(&statement.test), span),
            _ => {}
        }
    }

    fn endless(&mut self, test: Option<&Expression<'a>>, span: Span) {
        let is_endless = match test {
            None => true,
            Some(
                Expression::ObjectExpression(_)
                | Expression::ArrayExpression(_)
                | Expression::ArrowFunctionExpression(_)
                | Expression::RegExpLiteral(_),
            ) => true,
            Some(test) => self
                .fold()
                .constant(test)
                .is_some_and(|value| value.is_truthy()),
        };
        // Presets that allow `while` leave loops to the budget of the run.
        if is_endless && !self.preset.loops.r#while {
            self.error(IssueCode::InfiniteLoop, span, || {
                String::from("this loop has no condition that can become false; write one, such as `i < items.length`")
            });
        }
    }

    /// Warns once for each list of statements.
    pub(super) fn unreachable(&mut self, statements: &[Statement<'a>]) {
        let mut statements = statements.iter();
        let ends = |statement: &Statement<'a>| {
            matches!(
                statement,
                Statement::ReturnStatement(_)
                    | Statement::ThrowStatement(_)
                    | Statement::BreakStatement(_)
                    | Statement::ContinueStatement(_)
            )
        };
        if !statements.any(ends) {
            return;
        }
        let dead = statements.find(|statement| {
            !matches!(
                statement,
                Statement::FunctionDeclaration(_) | Statement::EmptyStatement(_)
            )
        });
        if let Some(dead) = dead {
            self.warning(IssueCode::UnreachableCode, dead.span(), || {
                String::from("this never runs; the statement before it leaves")
            });
        }
    }
}
