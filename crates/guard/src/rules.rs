//! Layer 1: the rules of a preset, each finding at the author's own place.
//!
//! The names of the script are settled first; then every rule is asked about every
//! node. A rule says what is wrong and what to write instead.

mod call;
mod flow;
mod identifier;
mod key;
mod regex;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    BindingPattern, Expression, FunctionType, MethodDefinitionKind, Program, PropertyKind,
};
use oxc_span::{GetSpan as _, Span};
use rustc_hash::FxHashSet;

use crate::code::IssueCode;
use crate::fold::Fold;
use crate::names::Names;
use crate::preset::{Functions, GLOBAL_OBJECTS, Globals, Preset};
use crate::report::Marks;

/// Asks every rule about the script.
pub(crate) fn judge<'a>(
    program: &Program<'a>,
    names: &Names<'a>,
    preset: &Preset,
    marks: &mut Marks,
) {
    let mut rules = Rules {
        source: program.source_text,
        preset,
        names,
        marks,
        allowed: match &preset.globals {
            Globals::Any => None,
            Globals::Only(allowed) => {
                let extra = preset.extra_globals.iter().map(String::as_str);
                Some(allowed.iter().copied().chain(extra).collect())
            }
        },
        refused: preset.refused.iter().copied().collect(),
        calls: vec![0; preset.calls.len()],
    };
    rules.references();
    for node in &names.nodes {
        rules.ask(*node);
    }
    rules.wishes();
}

struct Rules<'r, 'a> {
    source: &'a str,
    preset: &'r Preset,
    names: &'r Names<'a>,
    marks: &'r mut Marks,
    /// Names that need no declaration; `None` for all. What is in these two is ours,
    /// so no script can make them slow.
    allowed: Option<FxHashSet<&'r str>>,
    refused: FxHashSet<&'r str>,
    /// Calls counted, wish by wish.
    calls: Vec<usize>,
}

impl<'r, 'a> Rules<'r, 'a> {
    fn error(&mut self, code: IssueCode, span: Span, message: impl FnOnce() -> String) {
        self.marks.error(code, at(span), message);
    }

    fn warning(&mut self, code: IssueCode, span: Span, message: impl FnOnce() -> String) {
        self.marks.warning(code, at(span), message);
    }

    fn fold(&self) -> Fold<'r, 'a> {
        Fold::new(self.names)
    }

    fn starts_async(&self, span: Span) -> bool {
        starts_async(self.source, span)
    }

    /// Whether the expression is the global object, by any of its names.
    fn is_global_object(&self, expression: &Expression<'a>) -> bool {
        match expression {
            Expression::ThisExpression(_) => true,
            Expression::Identifier(identifier) => {
                GLOBAL_OBJECTS.contains(&identifier.name.as_str())
                    && self.names.is_global(identifier)
            }
            _ => false,
        }
    }

    /// Whether the expression is the global of this name, perhaps through a name
    /// that is set once.
    fn is_global_named(&self, expression: &Expression<'a>, name: &str) -> bool {
        let mut expression = expression;
        for _ in 0..4 {
            let Expression::Identifier(identifier) = expression else {
                return false;
            };
            let Some(binding) = self.names.binding(identifier) else {
                return identifier.name == name;
            };
            match binding.init {
                Some(init) if binding.writes == 0 => expression = init,
                _ => return false,
            }
        }
        false
    }

    fn functions(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::Function(function) => {
                if !self.preset.is_async && self.starts_async(function.span) {
                    self.error(IssueCode::NoAsync, function.span, || {
                        String::from("async functions are not allowed here")
                    });
                }
                if self.preset.functions == Functions::All {
                    return;
                }
                let code = match function.r#type {
                    FunctionType::FunctionDeclaration => IssueCode::NoUserFunctionDeclaration,
                    _ => IssueCode::NoUserFunctionExpression,
                };
                self.error(code, function.span, || {
                    String::from(
                        "functions are written as arrows here; use `const name = (a) => …`",
                    )
                });
            }
            AstKind::ArrowFunctionExpression(arrow) => {
                if !self.preset.is_async && self.starts_async(arrow.span) {
                    self.error(IssueCode::NoAsync, arrow.span, || {
                        String::from("async functions are not allowed here")
                    });
                }
                if self.preset.functions == Functions::None {
                    self.error(IssueCode::NoUserArrowFunction, arrow.span, || {
                        String::from("functions are not allowed here")
                    });
                }
            }
            AstKind::Class(class) if self.preset.functions != Functions::All => {
                self.error(IssueCode::NoUserMethodDefinition, class.span, || {
                    String::from("classes are not allowed here; use plain objects")
                });
            }
            AstKind::MethodDefinition(method) if self.preset.functions != Functions::All => {
                let word = match method.kind {
                    MethodDefinitionKind::Constructor => "constructor",
                    MethodDefinitionKind::Method => "method",
                    MethodDefinitionKind::Get => "getter",
                    MethodDefinitionKind::Set => "setter",
                };
                self.error(IssueCode::NoUserMethodDefinition, method.span, || {
                    format!("a {word} of a class is not allowed here; use plain objects")
                });
            }
            AstKind::ObjectProperty(property) => {
                let is_plain = property.kind == PropertyKind::Init && !property.method;
                if !is_plain && self.preset.functions != Functions::All {
                    self.error(IssueCode::NoUserMethodShorthand, property.span, || {
                        String::from("methods are not allowed here; write `name: () => …`")
                    });
                }
            }
            _ => {}
        }
    }

    fn modules(&mut self, kind: AstKind<'a>) {
        let message = "a script has no modules; call a tool instead of importing";
        match kind {
            AstKind::ImportExpression(import) => {
                self.error(IssueCode::NoEval, import.span, || String::from(message));
            }
            AstKind::ImportDeclaration(_)
            | AstKind::ImportMeta(_)
            | AstKind::ExportAllDeclaration(_)
            | AstKind::ExportDefaultDeclaration(_)
            | AstKind::ExportDeclaration(_)
            | AstKind::ExportNamedDeclaration(_)
            | AstKind::ExportFromDeclaration(_) => {
                self.error(IssueCode::NoModule, kind.span(), || String::from(message));
            }
            AstKind::WithStatement(with) => self.error(IssueCode::NoEval, with.span, || {
                String::from("`with` is not allowed; name the object each time")
            }),
            _ => {}
        }
    }

    fn declarator(&mut self, pattern: &BindingPattern<'a>, init: Option<&Expression<'a>>) {
        if let (BindingPattern::ObjectPattern(pattern), Some(init)) = (pattern, init)
            && self.preset.is_agent_script
            && self.is_global_object(init)
        {
            self.error(IssueCode::NoGlobalDestructure, pattern.span, || {
                String::from(
                    "the global object cannot be destructured; use the names the script is given",
                )
            });
        }
    }

    fn ask(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::StaticMemberExpression(member) => self.static_member(member),
            AstKind::ComputedMemberExpression(member) => self.computed_member(member),
            AstKind::ObjectProperty(property) => {
                self.functions(kind);
                self.object_property(property);
            }
            AstKind::BindingProperty(property) => {
                self.check_destructuring(&property.key, property.computed, property.span)
            }
            AstKind::AssignmentTargetPropertyProperty(property) => {
                self.check_destructuring(&property.name, property.computed, property.span);
            }
            AstKind::AssignmentTargetPropertyIdentifier(property) => {
                self.destructured_name(property.binding.name.as_str(), property.span);
            }
            AstKind::AssignmentExpression(assignment) => self.assignment(assignment),
            AstKind::VariableDeclarator(declarator) => {
                self.declarator(&declarator.id, declarator.init.as_ref())
            }
            AstKind::BindingIdentifier(identifier) => {
                self.check_declaration(identifier.name.as_str(), identifier.span)
            }
            AstKind::IdentifierName(identifier) => {
                self.hidden_letters(identifier.name.as_str(), identifier.span)
            }
            AstKind::LabelIdentifier(label) => {
                self.check_declaration(label.name.as_str(), label.span)
            }
            AstKind::ThisExpression(this) if self.preset.is_agent_script => {
                self.error(IssueCode::NoGlobalAccess, this.span, || {
                    String::from("`this` is not available; use the names the script is given")
                });
            }
            AstKind::CallExpression(call) => self.call(call),
            AstKind::NewExpression(new) => self.new_expression(new),
            AstKind::RegExpLiteral(literal) => self.regex_literal(literal),
            AstKind::BinaryExpression(binary) => self.power(binary),
            AstKind::ForStatement(_)
            | AstKind::ForOfStatement(_)
            | AstKind::ForInStatement(_)
            | AstKind::WhileStatement(_)
            | AstKind::DoWhileStatement(_) => self.loops(kind),
            AstKind::AwaitExpression(waits) if !self.preset.is_async => {
                self.error(IssueCode::NoAwait, waits.span, || {
                    String::from("`await` is not allowed here")
                });
            }
            AstKind::Program(program) => self.unreachable(&program.body),
            AstKind::BlockStatement(block) => self.unreachable(&block.body),
            AstKind::FunctionBody(body) => self.unreachable(&body.statements),
            AstKind::SwitchCase(case) => self.unreachable(&case.consequent),
            AstKind::Function(_)
            | AstKind::ArrowFunctionExpression(_)
            | AstKind::Class(_)
            | AstKind::MethodDefinition(_) => self.functions(kind),
            AstKind::ImportExpression(_)
            | AstKind::ImportDeclaration(_)
            | AstKind::ImportMeta(_)
            | AstKind::ExportAllDeclaration(_)
            | AstKind::ExportDefaultDeclaration(_)
            | AstKind::ExportDeclaration(_)
            | AstKind::ExportNamedDeclaration(_)
            | AstKind::ExportFromDeclaration(_)
            | AstKind::WithStatement(_) => self.modules(kind),
            // Rules list what they refuse, so other nodes pass.
            _ => {}
        }
    }
}

/// Whether a function starts with the keyword, not with a parameter of that name.
pub(crate) fn starts_async(source: &str, span: Span) -> bool {
    let text = source.get(at(span)..).unwrap_or("");
    text.strip_prefix("async")
        .is_some_and(|rest| !rest.trim_start().starts_with('='))
}

fn at(span: Span) -> usize {
    usize::try_from(span.start).unwrap_or(0)
}
