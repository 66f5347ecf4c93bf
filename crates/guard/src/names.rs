//! Which name is declared where, and what each use of a name means.
//!
//! One walk. A scope keeps what it declares; when it ends, the uses inside it that
//! it declares are settled and the rest are left to the scope around it. So a name
//! declared in one function is not declared in another, and a use before the
//! declaration is still a use of it.
//!
//! The walk also writes down the nodes it meets, so that code that looks at them after
//! the names are settled need not walk again, and tells what JavaScript refuses before
//! it runs: names declared twice here, the rest in `early`.

mod table;

use std::cell::Cell;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    BindingIdentifier, BindingPattern, Expression, Function, IdentifierReference, Program,
    SimpleAssignmentTarget, UnaryOperator, VariableDeclarationKind,
};
use oxc_ast_visit::VisitJs;
use oxc_ast_visit::walk_js;
use oxc_span::Span;
use oxc_syntax::reference::ReferenceId;
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use crate::early::{self, Flow, Frame};
use crate::report::Marks;
use table::Table;

/// Scopes with more names than this are looked through by a table.
const LOOK_MAX: usize = 12;

/// Names there is room for at first.
const ROOM_MAX: usize = 8_192;

/// One declared name.
#[derive(Debug)]
pub(crate) struct NameBinding<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    /// Its initial value, if it is a plain name with one expression.
    pub(crate) init: Option<&'a Expression<'a>>,
    /// Assignments after the declaration, and declarations after the first.
    pub(crate) writes: usize,
    kind: Kind,
}

/// How a name is declared, as far as a second declaration beside it cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `var`, and a function at the top of a function.
    Var,
    /// `let`, `const`, a class, a function in a block.
    Lexical,
    Param,
    /// `catch (e)`: a `var e` inside it is allowed.
    Caught,
    /// `catch ({ e })`
    CaughtPattern,
    /// The name of a function or class expression: any other may be declared beside it.
    Own,
}

impl Kind {
    fn of(declaration: VariableDeclarationKind) -> Kind {
        match declaration {
            VariableDeclarationKind::Var => Kind::Var,
            _ => Kind::Lexical,
        }
    }

    /// Whether two declarations of one name in one scope are refused.
    fn is_at_odds(self, other: Kind) -> bool {
        let may_meet = match (self, other) {
            (Kind::Own, _) | (_, Kind::Own) => true,
            (Kind::Var, other) => matches!(other, Kind::Var | Kind::Param | Kind::Caught),
            (one, Kind::Var) => matches!(one, Kind::Param | Kind::Caught),
            _ => false,
        };
        !may_meet
    }
}

/// One use of a name.
#[derive(Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    /// Which of the bindings; `None` for a global.
    pub(crate) binding: Option<usize>,
    pub(crate) is_write: bool,
    /// `typeof name`, which is harmless.
    pub(crate) is_typeof: bool,
    /// `{ name }`
    pub(crate) is_shorthand: bool,
    /// `name(…)`
    pub(crate) is_callee: bool,
}

/// All names of a script.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) bindings: Vec<NameBinding<'a>>,
    pub(crate) references: Vec<Reference<'a>>,
    /// The nodes of the tree, each before what is in it, but for the commonest kinds no
    /// rule asks about. Names that are used are `references`.
    pub(crate) nodes: Vec<AstKind<'a>>,
}

impl<'a> Names<'a> {
    /// Walks the script, and reports code that no engine would run.
    pub(crate) fn of(program: &Program<'a>, marks: &mut Marks) -> Names<'a> {
        let mut walk = Walk {
            names: Names::sized_for(program.source_text),
            marks,
            flow: Flow::default(),
            scopes: Vec::new(),
            open: Vec::new(),
            vars: Vec::new(),
            kinds: Vec::new(),
            own_name: None,
            declared_at: None,
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

    /// The use of a name; `None` if the walk did not meet it.
    pub(crate) fn reference(&self, identifier: &IdentifierReference<'a>) -> Option<&Reference<'a>> {
        self.references.get(identifier.reference_id.get()?.index())
    }

    /// The binding behind a use of a name; `None` for a global.
    pub(crate) fn binding(&self, identifier: &IdentifierReference<'a>) -> Option<&NameBinding<'a>> {
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
    /// Where the parameter of a `catch` is; its block is a scope inside.
    is_catch: bool,
    /// Bindings declared here, as indices.
    declared: Vec<usize>,
    /// The uses still open when it began, and the `var`s met in its function.
    open_before: usize,
    vars_before: usize,
}

struct Walk<'m, 'a> {
    names: Names<'a>,
    marks: &'m mut Marks,
    flow: Flow<'a>,
    scopes: Vec<Scope>,
    /// Uses that no scope has settled yet, as indices.
    open: Vec<usize>,
    /// Every `var` of the functions we are in: it passes through the blocks around it.
    vars: Vec<(&'a str, Span)>,
    /// The declarations we are in.
    kinds: Vec<Kind>,
    /// The name of the function or class that begins here, and how it is declared.
    own_name: Option<(u32, Kind)>,
    /// The declaration met last.
    declared_at: Option<Span>,
    is_write: bool,
    typeof_at: Option<u32>,
    shorthand_at: Option<u32>,
    callee_at: Option<u32>,
}

impl<'a> Walk<'_, 'a> {
    fn declare(&mut self, name: &'a str, span: Span, kind: Kind, init: Option<&'a Expression<'a>>) {
        // Met a moment ago, at its declarator or its function.
        if self.declared_at.replace(span) == Some(span) {
            return;
        }
        early::reserved(name, span, self.marks);
        let place = match kind {
            Kind::Var => {
                // Kept beside the bindings: a `var` passes through blocks that
                // may declare its name.
                self.vars.push((name, span));
                self.scopes.iter_mut().rev().find(|scope| scope.is_function)
            }
            _ => self.scopes.last_mut(),
        };
        let Some(scope) = place else {
            return;
        };
        let bindings = &mut self.names.bindings;
        // Linear while there are few. A script that chooses many names gets a
        // table, see `LOOK_MAX`.
        let known = (scope.declared.len() <= LOOK_MAX)
            .then(|| named(&scope.declared, bindings, name))
            .flatten();
        // A name declared twice has no one value. In a crowded scope the second
        // becomes a binding of its own, and settling takes the last.
        if let Some(binding) = known.and_then(|index| bindings.get_mut(index)) {
            if binding.kind.is_at_odds(kind) {
                early::twice(name, span, self.marks);
            }
            // A second declaration counts as a write: the name has no one value to follow.
            binding.writes += 1;
            return;
        }
        scope.declared.push(bindings.len());
        bindings.push(NameBinding {
            name,
            span,
            init,
            writes: 0,
            kind,
        });
    }

    fn declare_identifier(&mut self, identifier: &'a BindingIdentifier<'a>) {
        let own = self.own_name.filter(|own| own.0 == identifier.span.start);
        let kind = match own {
            Some((_, kind)) => kind,
            None => self.kinds.last().copied().unwrap_or(Kind::Lexical),
        };
        self.declare(identifier.name.as_str(), identifier.span, kind, None);
    }

    /// The name of a function or a class is declared around it if it is a declaration;
    /// a second time inside it, which changes nothing.
    fn function(&mut self, function: &'a Function<'a>) {
        let Some(identifier) = &function.id else {
            return;
        };
        if !function.is_declaration() {
            self.own_name = Some((identifier.span.start, Kind::Own));
            return;
        }
        let is_top = self.scopes.last().is_some_and(|scope| scope.is_function);
        let kind = match is_top {
            true => Kind::Var,
            false => Kind::Lexical,
        };
        self.declare(identifier.name.as_str(), identifier.span, kind, None);
    }

    fn refer(&mut self, identifier: &'a IdentifierReference<'a>) {
        let index = self.names.references.len();
        identifier
            .reference_id
            .set(Some(ReferenceId::from_usize(index)));
        let start = Some(identifier.span.start);
        early::reserved(identifier.name.as_str(), identifier.span, self.marks);
        self.names.references.push(Reference {
            name: identifier.name.as_str(),
            span: identifier.span,
            binding: None,
            // Taken, so that only the target itself is a write and not what stands in it.
            is_write: std::mem::take(&mut self.is_write),
            is_typeof: self.typeof_at == start,
            is_shorthand: self.shorthand_at == start,
            is_callee: self.callee_at == start,
        });
        self.open.push(index);
    }

    /// Enters a frame for jumps and reserved words; `leave_node` leaves it.
    fn enter_frame(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::Function(function) => {
                self.function(function);
                self.flow.push(Frame::Function);
            }
            AstKind::Class(class) => {
                let kind = match class.is_declaration() {
                    true => Kind::Lexical,
                    false => Kind::Own,
                };
                self.own_name = class.id.as_ref().map(|id| (id.span.start, kind));
                self.flow.push(Frame::Class);
            }
            AstKind::ArrowFunctionExpression(arrow) => {
                early::strict_arrow(arrow, self.marks);
                self.flow.push(Frame::Arrow);
            }
            AstKind::ForOfStatement(statement) => {
                early::head(&statement.left, self.marks);
                self.flow.push(Frame::Loop);
            }
            AstKind::ForInStatement(statement) => {
                early::head(&statement.left, self.marks);
                self.flow.push(Frame::Loop);
            }
            AstKind::ForStatement(_)
            | AstKind::WhileStatement(_)
            | AstKind::DoWhileStatement(_) => self.flow.push(Frame::Loop),
            AstKind::SwitchStatement(_) => self.flow.push(Frame::Switch),
            AstKind::StaticBlock(_) => self.flow.push(Frame::Function),
            AstKind::LabeledStatement(labelled) => self.flow.label(labelled, self.marks),
            AstKind::BreakStatement(_)
            | AstKind::ContinueStatement(_)
            | AstKind::AwaitExpression(_)
            | AstKind::NewTarget(_)
            | AstKind::Super(_)
            | AstKind::PrivateIdentifier(_) => self.flow.check(kind, self.marks),
            _ => {}
        }
    }

    /// Settles the uses inside a scope that the scope declares, and says what it
    /// declares twice.
    fn settle(&mut self, scope: &Scope) {
        // Those of inner functions are gone already, because a function truncates the list.
        let vars = self.vars.get(scope.vars_before..).unwrap_or(&[]);
        if scope.declared.is_empty() {
            return;
        }
        let Names {
            bindings,
            references,
            nodes: _,
        } = &mut self.names;
        let marks = &mut *self.marks;
        let table =
            (scope.declared.len() > LOOK_MAX).then(|| tabled(&scope.declared, bindings, marks));
        let find = |bindings: &[NameBinding<'a>], name: &str| match &table {
            Some(table) => table.get(name),
            None => named(&scope.declared, bindings, name),
        };
        for (name, span) in vars {
            let found = find(bindings, name).and_then(|index| bindings.get(index));
            if found.is_some_and(|binding| binding.kind.is_at_odds(Kind::Var)) {
                early::twice(name, *span, marks);
            }
        }
        // What stays open moves to the front: the scope around it settles the rest.
        let mut kept = scope.open_before;
        for place in scope.open_before..self.open.len() {
            let Some(index) = self.open.get(place).copied() else {
                continue;
            };
            let Some(reference) = references.get_mut(index) else {
                continue;
            };
            match find(bindings, reference.name) {
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

    /// The block of a `catch` declares the name of its parameter again.
    fn caught_twice(&mut self, block: &Scope) {
        let caught = self.scopes.last().filter(|scope| scope.is_catch);
        // The block of a function is another scope, where the name may be declared again.
        let Some(caught) = caught.filter(|_| !block.is_function) else {
            return;
        };
        let bindings = &self.names.bindings;
        let table = (caught.declared.len() > LOOK_MAX)
            .then(|| tabled(&caught.declared, bindings, self.marks));
        for binding in block
            .declared
            .iter()
            .filter_map(|index| bindings.get(*index))
        {
            let found = match &table {
                Some(table) => table.get(binding.name),
                None => named(&caught.declared, bindings, binding.name),
            };
            if found.is_some() && binding.kind == Kind::Lexical {
                early::twice(binding.name, binding.span, self.marks);
            }
        }
    }
}

/// The binding of this name among those a scope declares.
fn named(declared: &[usize], bindings: &[NameBinding<'_>], name: &str) -> Option<usize> {
    let is_it = |index: &usize| {
        bindings
            .get(*index)
            .is_some_and(|binding| binding.name == name)
    };
    declared.iter().copied().find(is_it)
}

/// A table of the names that a crowded scope declares; duplicates are marked.
fn tabled<'a>(declared: &[usize], bindings: &[NameBinding<'a>], marks: &mut Marks) -> Table<'a> {
    let names = declared.iter().map(|index| {
        let name = bindings.get(*index).map_or("", |binding| binding.name);
        (name, *index)
    });
    Table::new(names, |first, second| {
        let (Some(first), Some(second)) = (bindings.get(first), bindings.get(second)) else {
            return;
        };
        if first.kind.is_at_odds(second.kind) {
            early::twice(second.name, second.span, marks);
        }
    })
}

impl<'a> VisitJs<'a> for Walk<'_, 'a> {
    fn enter_scope(&mut self, flags: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        let functions = ScopeFlags::Top | ScopeFlags::Function | ScopeFlags::ClassStaticBlock;
        self.scopes.push(Scope {
            is_function: flags.intersects(functions),
            is_catch: flags.contains(ScopeFlags::CatchClause),
            declared: Vec::new(),
            open_before: self.open.len(),
            vars_before: self.vars.len(),
        });
    }

    fn leave_scope(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.settle(&scope);
            self.caught_twice(&scope);
            // A `var` ends at its function; blocks inside it pass theirs on.
            if scope.is_function {
                self.vars.truncate(scope.vars_before);
            }
        }
    }

    fn enter_node(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::IdentifierReference(identifier) => return self.refer(identifier),
            AstKind::VariableDeclaration(declaration) => {
                return self.kinds.push(Kind::of(declaration.kind));
            }
            // An enclosing declaration's kind ends at a function.
            AstKind::FormalParameters(_) => {
                self.flow.push(Frame::Params);
                return self.kinds.push(Kind::Param);
            }
            AstKind::CatchParameter(caught) => {
                return self.kinds.push(match &caught.pattern {
                    BindingPattern::BindingIdentifier(_) => Kind::Caught,
                    _ => Kind::CaughtPattern,
                });
            }
            // Every script has these in hundreds, and there is nothing to judge in them
            // or to rewrite. Other nodes are kept, because a rule can ask about them.
            AstKind::StringLiteral(_)
            | AstKind::NumericLiteral(_)
            | AstKind::TemplateLiteral(_)
            | AstKind::TemplateElement(_)
            | AstKind::ObjectExpression(_)
            | AstKind::LogicalExpression(_)
            | AstKind::FormalParameter(_)
            | AstKind::IfStatement(_)
            | AstKind::ReturnStatement(_) => return,
            AstKind::IdentifierName(identifier) if identifier.name.is_ascii() => return,
            // Of these only calls are asked about.
            AstKind::ExpressionStatement(statement)
                if !matches!(statement.expression, Expression::CallExpression(_)) =>
            {
                return;
            }
            AstKind::BindingIdentifier(identifier) => self.declare_identifier(identifier),
            AstKind::VariableDeclarator(declarator) => {
                if let (BindingPattern::BindingIdentifier(identifier), Some(init)) =
                    (&declarator.id, &declarator.init)
                {
                    let kind = self.kinds.last().copied().unwrap_or(Kind::Lexical);
                    self.declare(identifier.name.as_str(), identifier.span, kind, Some(init));
                }
            }
            AstKind::UnaryExpression(unary) => {
                if let (UnaryOperator::Typeof, Expression::Identifier(identifier)) =
                    (unary.operator, &unary.argument)
                {
                    self.typeof_at = Some(identifier.span.start);
                }
                early::deleted(unary, self.marks);
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
            _ => self.enter_frame(kind),
        }
        self.names.nodes.push(kind);
    }

    fn leave_node(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::VariableDeclaration(_) | AstKind::CatchParameter(_) => {
                self.kinds.pop();
            }
            AstKind::FormalParameters(_) => {
                self.kinds.pop();
                self.flow.pop();
            }
            AstKind::Function(_)
            | AstKind::Class(_)
            | AstKind::ArrowFunctionExpression(_)
            | AstKind::ForStatement(_)
            | AstKind::ForOfStatement(_)
            | AstKind::ForInStatement(_)
            | AstKind::WhileStatement(_)
            | AstKind::DoWhileStatement(_)
            | AstKind::SwitchStatement(_)
            | AstKind::StaticBlock(_)
            | AstKind::LabeledStatement(_) => self.flow.pop(),
            _ => {}
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
