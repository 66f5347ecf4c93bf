//! Which name is declared where, and what each use of a name means.
//!
//! One walk. A scope keeps what it declares; when it ends, the uses inside it that
//! it declares are settled and the rest are left to the scope around it. So a name
//! declared in one function is not declared in another, and a use before the
//! declaration is still a use of it.
//!
//! The walk also writes down the nodes it meets, so that whoever looks at them after
//! the names are settled need not walk again.

mod table;

use std::cell::Cell;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    BindingIdentifier, BindingPattern, Expression, IdentifierReference, Program,
    SimpleAssignmentTarget, UnaryOperator, VariableDeclarationKind,
};
use oxc_ast_visit::VisitJs;
use oxc_ast_visit::walk_js;
use oxc_span::Span;
use oxc_syntax::reference::ReferenceId;
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use table::Table;

/// Scopes with more names than this are looked through by a table.
const LOOK_MAX: usize = 12;

/// Names there is room for at first.
const ROOM_MAX: usize = 8_192;

/// One declared name.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    /// What it is declared as, if that is one expression and it is a plain name.
    pub(crate) init: Option<&'a Expression<'a>>,
    /// Assignments after the declaration, and declarations after the first.
    pub(crate) writes: usize,
}

/// One use of a name.
#[derive(Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    /// Which of the bindings; `None` for a global.
    pub(crate) binding: Option<usize>,
    pub(crate) is_write: bool,
    /// `typeof name`, which harms nobody.
    pub(crate) is_typeof: bool,
    /// `{ name }`
    pub(crate) is_shorthand: bool,
    /// `name(…)`
    pub(crate) is_callee: bool,
}

/// All names of a script.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) bindings: Vec<Binding<'a>>,
    pub(crate) references: Vec<Reference<'a>>,
    /// The nodes of the tree, each before what is in it, but for the commonest kinds no
    /// rule asks about. Names that are used are `references`.
    pub(crate) nodes: Vec<AstKind<'a>>,
}

impl<'a> Names<'a> {
    /// Walks the script.
    pub(crate) fn of(program: &Program<'a>) -> Names<'a> {
        let mut walk = Walk {
            names: Names::sized_for(program.source_text),
            scopes: Vec::new(),
            open: Vec::new(),
            kinds: Vec::new(),
            is_write: false,
            typeof_at: None,
            shorthand_at: None,
            callee_at: None,
        };
        walk.visit_program(program);
        walk.names
    }

    /// Room for the names of an ordinary script.
    fn sized_for(source: &str) -> Names<'a> {
        let room = (source.len() / 16).min(ROOM_MAX);
        Names {
            bindings: Vec::new(),
            references: Vec::with_capacity(room),
            nodes: Vec::with_capacity(room * 2),
        }
    }

    /// What a use of a name means; `None` if the walk did not meet it.
    pub(crate) fn reference(&self, identifier: &IdentifierReference<'a>) -> Option<&Reference<'a>> {
        self.references.get(identifier.reference_id.get()?.index())
    }

    /// The binding behind a use of a name; `None` for a global.
    pub(crate) fn binding(&self, identifier: &IdentifierReference<'a>) -> Option<&Binding<'a>> {
        self.bindings.get(self.reference(identifier)?.binding?)
    }

    /// Whether a use of a name means the global of that name.
    pub(crate) fn is_global(&self, identifier: &IdentifierReference<'a>) -> bool {
        self.reference(identifier)
            .is_some_and(|found| found.binding.is_none())
    }
}

struct Scope {
    /// Where `var` goes.
    is_function: bool,
    /// Bindings declared here, as indices.
    declared: Vec<usize>,
    /// The uses still open when it began.
    open_before: usize,
}

struct Walk<'a> {
    names: Names<'a>,
    scopes: Vec<Scope>,
    /// Uses that no scope has settled yet, as indices.
    open: Vec<usize>,
    /// The declarations we are in.
    kinds: Vec<VariableDeclarationKind>,
    is_write: bool,
    typeof_at: Option<u32>,
    shorthand_at: Option<u32>,
    callee_at: Option<u32>,
}

impl<'a> Walk<'a> {
    fn declare(
        &mut self,
        name: &'a str,
        span: Span,
        is_var: bool,
        init: Option<&'a Expression<'a>>,
    ) {
        let place = match is_var {
            true => self.scopes.iter_mut().rev().find(|scope| scope.is_function),
            false => self.scopes.last_mut(),
        };
        let Some(scope) = place else {
            return;
        };
        let bindings = &mut self.names.bindings;
        // Met a moment ago, at its declarator or its function.
        if bindings.last().is_some_and(|binding| binding.span == span) {
            return;
        }
        let known = (scope.declared.len() <= LOOK_MAX)
            .then(|| {
                scope.declared.iter().copied().find(|index| {
                    bindings
                        .get(*index)
                        .is_some_and(|binding| binding.name == name)
                })
            })
            .flatten();
        // A name declared twice has no one value. In a crowded scope the second
        // becomes a binding of its own, and settling takes the last.
        if let Some(binding) = known.and_then(|index| bindings.get_mut(index)) {
            binding.writes += 1;
            return;
        }
        scope.declared.push(bindings.len());
        bindings.push(Binding {
            name,
            span,
            init,
            writes: 0,
        });
    }

    fn declare_identifier(&mut self, identifier: &'a BindingIdentifier<'a>) {
        let is_var = self.kinds.last() == Some(&VariableDeclarationKind::Var);
        self.declare(identifier.name.as_str(), identifier.span, is_var, None);
    }

    fn refer(&mut self, identifier: &'a IdentifierReference<'a>) {
        let index = self.names.references.len();
        identifier
            .reference_id
            .set(Some(ReferenceId::from_usize(index)));
        let start = Some(identifier.span.start);
        self.names.references.push(Reference {
            name: identifier.name.as_str(),
            span: identifier.span,
            binding: None,
            is_write: std::mem::take(&mut self.is_write),
            is_typeof: self.typeof_at == start,
            is_shorthand: self.shorthand_at == start,
            is_callee: self.callee_at == start,
        });
        self.open.push(index);
    }

    /// Settles the uses inside a scope that the scope declares.
    fn settle(&mut self, scope: &Scope) {
        if scope.declared.is_empty() {
            return;
        }
        let Names {
            bindings,
            references,
            nodes: _,
        } = &mut self.names;
        let table = (scope.declared.len() > LOOK_MAX).then(|| {
            let declared = scope.declared.iter();
            Table::new(declared.map(|index| {
                let name = bindings.get(*index).map_or("", |binding| binding.name);
                (name, *index)
            }))
        });
        let mut kept = scope.open_before;
        for place in scope.open_before..self.open.len() {
            let Some(index) = self.open.get(place).copied() else {
                continue;
            };
            let Some(reference) = references.get_mut(index) else {
                continue;
            };
            let found = match &table {
                Some(table) => table.get(reference.name),
                None => scope.declared.iter().copied().find(|index| {
                    bindings
                        .get(*index)
                        .is_some_and(|binding| binding.name == reference.name)
                }),
            };
            match found {
                Some(found) => {
                    reference.binding = Some(found);
                    if let Some(binding) = bindings.get_mut(found) {
                        binding.writes += usize::from(reference.is_write);
                    }
                }
                None => {
                    if let Some(slot) = self.open.get_mut(kept) {
                        *slot = index;
                    }
                    kept += 1;
                }
            }
        }
        self.open.truncate(kept);
    }
}

impl<'a> VisitJs<'a> for Walk<'a> {
    fn enter_scope(&mut self, flags: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        let functions = ScopeFlags::Top | ScopeFlags::Function | ScopeFlags::ClassStaticBlock;
        self.scopes.push(Scope {
            is_function: flags.intersects(functions),
            declared: Vec::new(),
            open_before: self.open.len(),
        });
    }

    fn leave_scope(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.settle(&scope);
        }
    }

    fn enter_node(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::IdentifierReference(identifier) => return self.refer(identifier),
            AstKind::VariableDeclaration(declaration) => return self.kinds.push(declaration.kind),
            // What a declaration around says about `var` ends at a function.
            AstKind::FormalParameters(_) => return self.kinds.push(VariableDeclarationKind::Let),
            // Every script has these in hundreds, and there is nothing to judge in them
            // or to rewrite. What is not listed is kept: a rule can ask about it.
            AstKind::StringLiteral(_)
            | AstKind::NumericLiteral(_)
            | AstKind::TemplateLiteral(_)
            | AstKind::TemplateElement(_)
            | AstKind::ObjectExpression(_)
            | AstKind::LogicalExpression(_)
            | AstKind::ExpressionStatement(_)
            | AstKind::FormalParameter(_)
            | AstKind::IfStatement(_)
            | AstKind::ReturnStatement(_) => return,
            AstKind::IdentifierName(identifier) if identifier.name.is_ascii() => return,
            AstKind::BindingIdentifier(identifier) => self.declare_identifier(identifier),
            AstKind::VariableDeclarator(declarator) => {
                if let (BindingPattern::BindingIdentifier(identifier), Some(init)) =
                    (&declarator.id, &declarator.init)
                {
                    let is_var = self.kinds.last() == Some(&VariableDeclarationKind::Var);
                    self.declare(
                        identifier.name.as_str(),
                        identifier.span,
                        is_var,
                        Some(init),
                    );
                }
            }
            // The name of a function or a class is declared around it; a second
            // time inside it, which changes nothing.
            AstKind::Function(function) if function.is_declaration() => {
                if let Some(identifier) = &function.id {
                    self.declare(identifier.name.as_str(), identifier.span, false, None);
                }
            }
            AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof => {
                if let Expression::Identifier(identifier) = &unary.argument {
                    self.typeof_at = Some(identifier.span.start);
                }
            }
            AstKind::ObjectProperty(property) if property.shorthand => {
                self.shorthand_at = Some(property.span.start);
            }
            AstKind::CallExpression(call) => {
                if let Expression::Identifier(identifier) = &call.callee {
                    self.callee_at = Some(identifier.span.start);
                }
            }
            AstKind::AssignmentTargetPropertyIdentifier(_) => self.is_write = true,
            _ => {}
        }
        self.names.nodes.push(kind);
    }

    fn leave_node(&mut self, kind: AstKind<'a>) {
        if matches!(
            kind,
            AstKind::VariableDeclaration(_) | AstKind::FormalParameters(_)
        ) {
            self.kinds.pop();
        }
    }

    fn visit_simple_assignment_target(&mut self, target: &SimpleAssignmentTarget<'a>) {
        self.is_write = matches!(
            target,
            SimpleAssignmentTarget::AssignmentTargetIdentifier(_)
        );
        walk_js::walk_simple_assignment_target(self, target);
    }
}

#[cfg(test)]
mod tests;
