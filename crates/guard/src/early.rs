//! Early errors that JavaScript reports before it runs a line, and the parser does not:
//! jumps without a target, reserved words as names, names declared twice, and words
//! that only mean something inside a class.
//!
//! Found on the walk that settles names (`names`), so that a script is
//! walked once. A script that passes must compile in the sandbox;
//! `tests/it/compiles.rs` holds it to that with the engine itself.

use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, BindingPattern, Expression, ForStatementLeft,
    FormalParameters, LabeledStatement, Statement, UnaryExpression, UnaryOperator,
};
use oxc_span::{GetSpan as _, Span};

use crate::code::IssueCode;
use crate::report::Marks;

/// The constructs around a statement that matter for jumps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame<'a> {
    /// A function with a `this` of its own; jumps end here.
    Function,
    /// An arrow function; jumps end here.
    Arrow,
    /// The parameters of a function.
    Params,
    Class,
    Loop,
    Switch,
    Label {
        name: &'a str,
        is_loop: bool,
    },
}

/// The constructs around the current node, from outside in.
#[derive(Debug, Default)]
pub(crate) struct Flow<'a>(Vec<Frame<'a>>);

impl<'a> Flow<'a> {
    pub(crate) fn push(&mut self, frame: Frame<'a>) {
        self.0.push(frame);
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// A label begins.
    pub(crate) fn label(&mut self, labelled: &'a LabeledStatement<'a>, marks: &mut Marks) {
        let (name, span) = (labelled.label.name.as_str(), labelled.label.span);
        reserved(name, span, marks);
        // Looked up before it is pushed, or it would find itself.
        if self.labelled(name).is_some() {
            refuse(marks, span, || {
                format!("the label `{name}` is inside a statement with the same label; rename one")
            });
        }
        let is_loop = is_loop(&labelled.body);
        self.push(Frame::Label { name, is_loop });
    }

    /// A node that only means something inside another.
    pub(crate) fn check(&self, kind: AstKind<'a>, marks: &mut Marks) {
        match kind {
            AstKind::BreakStatement(jump) => match &jump.label {
                Some(label) => self.jump_to(label.name.as_str(), label.span, false, marks),
                None if self.reaches(|frame| matches!(frame, Frame::Loop | Frame::Switch)) => {}
                None => refuse(marks, jump.span, || {
                    String::from(
                        "`break` has no loop or `switch` around it in this function; a callback ends with `return`",
                    )
                }),
            },
            AstKind::ContinueStatement(jump) => match &jump.label {
                Some(label) => self.jump_to(label.name.as_str(), label.span, true, marks),
                None if self.reaches(|frame| matches!(frame, Frame::Loop)) => {}
                None => refuse(marks, jump.span, || {
                    String::from(
                        "`continue` has no loop around it in this function; a callback ends with `return`",
                    )
                }),
            },
            AstKind::AwaitExpression(waits) if self.is_in_params() => {
                refuse(marks, waits.span, || {
                    String::from(
                        "`await` cannot be among the parameters of a function; wait in its body",
                    )
                });
            }
            AstKind::NewTarget(target) if !self.is_in_function() => {
                refuse(marks, target.span, || {
                    String::from("`new.target` means nothing outside a function")
                });
            }
            AstKind::Super(word) if !self.is_in_function() => refuse(marks, word.span, || {
                String::from("`super` means nothing outside a class")
            }),
            AstKind::PrivateIdentifier(name) if !self.is_in_class() => {
                let word = name.name.as_str();
                refuse(marks, name.span, || {
                    let word = model::text::elided(word, 80);
                    format!(
                        "`#{word}` is a private name, which only a class can have; use a plain key"
                    )
                });
            }
            _ => {}
        }
    }

    fn jump_to(&self, name: &str, span: Span, continues: bool, marks: &mut Marks) {
        let message = match self.labelled(name) {
            Some(is_loop) if is_loop || !continues => return,
            Some(_) => "labels no loop, so `continue` cannot go on with it",
            None => "is no label of a statement around this one in the same function",
        };
        refuse(marks, span, || {
            format!("`{}` {message}", model::text::elided(name, 80))
        });
    }

    /// The constructs around, from inside out, up to the function.
    fn around(&self) -> impl Iterator<Item = &Frame<'a>> {
        let is_inside =
            // Parameters end the search as well: a jump in a default value has
            // no loop around it.
            |frame: &&Frame<'a>| !matches!(frame, Frame::Function | Frame::Arrow | Frame::Params);
        self.0.iter().rev().take_while(is_inside)
    }

    fn reaches(&self, is_target: impl Fn(&Frame<'a>) -> bool) -> bool {
        self.around().any(is_target)
    }

    /// Whether the enclosing label of this name, if any, belongs to a loop.
    fn labelled(&self, wanted: &str) -> Option<bool> {
        self.around().find_map(|frame| match frame {
            Frame::Label { name, is_loop } if *name == wanted => Some(*is_loop),
            _ => None,
        })
    }

    fn is_in_params(&self) -> bool {
        let is_edge =
            |frame: &&Frame<'a>| matches!(frame, Frame::Function | Frame::Arrow | Frame::Params);
        let edge = self.0.iter().rev().find(is_edge);
        matches!(edge, Some(Frame::Params))
    }

    fn is_in_function(&self) -> bool {
        self.0.iter().any(|frame| matches!(frame, Frame::Function))
    }

    fn is_in_class(&self) -> bool {
        self.0.iter().any(|frame| matches!(frame, Frame::Class))
    }
}

/// A name declared a second time where one is enough.
pub(crate) fn twice(name: &str, span: Span, marks: &mut Marks) {
    refuse(marks, span, || {
        let name = model::text::elided(name, 80);
        format!(
            "`{name}` is declared twice here; rename one, or leave out the second `let` or `const`"
        )
    });
}

/// Words reserved in strict code. The parser refuses words that are reserved
/// everywhere.
pub(crate) fn reserved(name: &str, span: Span, marks: &mut Marks) {
    let is_reserved = match name.len() {
        3 => name == "let",
        5 => matches!(name, "yield" | "await"),
        6 => matches!(name, "static" | "public"),
        7 => matches!(name, "package" | "private"),
        9 => matches!(name, "interface" | "protected"),
        10 => name == "implements",
        _ => false,
    };
    if is_reserved {
        refuse(marks, span, || {
            format!("`{name}` is a reserved word of JavaScript; use another name")
        });
    }
}

/// `delete name`
pub(crate) fn deleted(unary: &UnaryExpression<'_>, marks: &mut Marks) {
    if unary.operator != UnaryOperator::Delete {
        return;
    }
    if let Expression::Identifier(identifier) = &unary.argument {
        let name = identifier.name.as_str();
        refuse(marks, unary.span, || {
            let name = model::text::elided(name, 80);
            format!("`delete` removes properties, not the variable `{name}`; set it to `undefined`")
        });
    }
}

/// `"use strict"` where parameters have defaults, patterns or a rest.
pub(crate) fn strict_arrow(arrow: &ArrowFunctionExpression<'_>, marks: &mut Marks) {
    let ArrowFunctionBody::FunctionBody(body) = &arrow.body else {
        return;
    };
    let strict = body
        .directives
        .iter()
        .find(|directive| directive.directive == "use strict");
    if let Some(strict) = strict.filter(|_| !is_simple(&arrow.params)) {
        refuse(marks, strict.span, || {
            String::from(
                "`'use strict'` cannot be in a function with defaults or patterns; leave it out, every script is strict",
            )
        });
    }
}

/// `for (const a = 1 of list)`
pub(crate) fn head(left: &ForStatementLeft<'_>, marks: &mut Marks) {
    let ForStatementLeft::VariableDeclaration(declaration) = left else {
        return;
    };
    let mut values = declaration.declarations.iter();
    if let Some(value) = values.find_map(|declarator| declarator.init.as_ref()) {
        refuse(marks, value.span(), || {
            String::from(
                "the variable of this loop gets its value from the list; leave out the one after `=`",
            )
        });
    }
}

fn is_simple(params: &FormalParameters<'_>) -> bool {
    let is_plain =
        |pattern: &BindingPattern<'_>| matches!(pattern, BindingPattern::BindingIdentifier(_));
    params.rest.is_none()
        && params
            .items
            .iter()
            .all(|param| param.initializer.is_none() && is_plain(&param.pattern))
}

/// Whether a statement is a loop, perhaps behind more labels.
fn is_loop(statement: &Statement<'_>) -> bool {
    let mut statement = statement;
    while let Statement::LabeledStatement(labelled) = statement {
        statement = &labelled.body;
    }
    matches!(
        statement,
        Statement::ForStatement(_)
            | Statement::ForOfStatement(_)
            | Statement::ForInStatement(_)
            | Statement::WhileStatement(_)
            | Statement::DoWhileStatement(_)
    )
}

fn refuse(marks: &mut Marks, span: Span, message: impl FnOnce() -> String) {
    let at = usize::try_from(span.start).unwrap_or(0);
    marks.error(IssueCode::ParseError, at, message);
}
