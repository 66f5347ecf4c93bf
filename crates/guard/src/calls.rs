//! Where a script calls tools, and which of these calls are not awaited.
//!
//! A call without `await` runs on its own: it is stopped when the script ends, and its
//! failure is lost. That is seen where a call is a statement of its own, where its
//! promise gets a name that is never used, and inside an async function whose own
//! promise is dropped in that way or by `forEach`.

use model::document::json::Lines;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, BindingPattern, CallExpression, Expression, Program, Statement, VariableDeclarator,
};
use oxc_span::{GetSpan as _, Span};
use rustc_hash::FxHashSet;

use crate::names::Names;
use crate::preset::Preset;
use crate::rules::starts_async;

/// A call of a tool in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The tool, if it is written out.
    pub tool: Option<String>,
    /// The author's line, from 1.
    pub line: usize,
    /// The author's column in characters, from 1.
    pub column: usize,
    /// Whether it is not awaited.
    pub is_dropped: bool,
}

/// A call that still knows its place as a byte.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) at: usize,
    pub(crate) tool: Option<String>,
    pub(crate) is_dropped: bool,
}

/// The calls of a script, in its order.
pub(crate) fn sites<'a>(program: &Program<'a>, names: &Names<'a>, preset: &Preset) -> Vec<Site> {
    if !preset.is_agent_script {
        return Vec::new();
    }
    let mut walk = Walk {
        source: program.source_text,
        names,
        preset,
        // The last expression is the result of the script.
        returned: program.body.last().map(Statement::span),
        used: None,
        dropped: Vec::new(),
        sites: Vec::new(),
    };
    for node in &names.nodes {
        walk.node(*node);
    }
    walk.sites
}

/// Calls with lines and columns.
pub(crate) fn place(source: &str, sites: Vec<Site>) -> Vec<CallSite> {
    if sites.is_empty() {
        return Vec::new();
    }
    let lines = Lines::new(source);
    let placed = sites.into_iter().map(|site| {
        let place = lines.position(site.at);
        CallSite {
            tool: site.tool,
            line: place.line,
            column: place.column,
            is_dropped: site.is_dropped,
        }
    });
    placed.collect()
}

struct Walk<'n, 'a> {
    source: &'a str,
    names: &'n Names<'a>,
    preset: &'n Preset,
    returned: Option<Span>,
    /// Where the names that are used are declared.
    used: Option<FxHashSet<u32>>,
    /// Calls and async functions whose promise is dropped; the innermost last.
    dropped: Vec<Span>,
    sites: Vec<Site>,
}

impl<'a> Walk<'_, 'a> {
    fn node(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::ExpressionStatement(statement) if Some(statement.span) != self.returned => {
                if let Expression::CallExpression(call) = &statement.expression {
                    self.drop_call(call);
                }
            }
            AstKind::VariableDeclarator(declarator) => self.declarator(declarator),
            AstKind::CallExpression(call) => {
                if method(call) == Some("forEach") {
                    self.drop_functions(call);
                }
                if let Some(tool) = self.tool(call) {
                    let is_dropped = self.is_dropped(call.span);
                    self.sites.push(Site {
                        at: usize::try_from(call.span.start).unwrap_or(0),
                        tool,
                        is_dropped,
                    });
                }
            }
            _ => {}
        }
    }

    /// The promise of a call is dropped, and so are those of functions it is given.
    fn drop_call(&mut self, call: &CallExpression<'a>) {
        if self.tool(call).is_some() {
            self.dropped.push(call.span);
        }
        self.drop_functions(call);
    }

    fn drop_functions(&mut self, call: &CallExpression<'a>) {
        for argument in &call.arguments {
            if let Argument::ArrowFunctionExpression(arrow) = argument
                && starts_async(self.source, arrow.span)
            {
                self.dropped.push(arrow.span);
            }
        }
    }

    fn declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        let (BindingPattern::BindingIdentifier(name), Some(Expression::CallExpression(call))) =
            (&declarator.id, &declarator.init)
        else {
            return;
        };
        if self.tool(call).is_some() && !self.is_used(name.span.start) {
            self.dropped.push(call.span);
        }
    }

    fn is_used(&mut self, declared_at: u32) -> bool {
        let names = self.names;
        let used = self.used.get_or_insert_with(|| {
            let references = names.references.iter();
            let bindings =
                references.filter_map(|reference| names.bindings.get(reference.binding?));
            bindings.map(|binding| binding.span.start).collect()
        });
        used.contains(&declared_at)
    }

    /// Nodes come in the order of the script, so earlier spans are over.
    fn is_dropped(&mut self, span: Span) -> bool {
        while self
            .dropped
            .last()
            .is_some_and(|last| last.end <= span.start)
        {
            self.dropped.pop();
        }
        let mut around = self.dropped.iter();
        around.any(|dropped| dropped.start <= span.start && span.end <= dropped.end)
    }

    /// The tool a call calls, if it calls one: by name, or as a method of its space.
    fn tool(&self, call: &CallExpression<'a>) -> Option<Option<String>> {
        match &call.callee {
            Expression::Identifier(identifier) => {
                let is_tool = identifier.name == "callTool" && self.names.is_global(identifier);
                is_tool.then(|| match call.arguments.first() {
                    Some(Argument::StringLiteral(name)) => Some(name.value.to_string()),
                    _ => None,
                })
            }
            Expression::StaticMemberExpression(member) => match &member.object {
                Expression::Identifier(space) if self.names.is_global(space) => {
                    let mut spaces = self.preset.extra_globals.iter();
                    let is_tool = spaces.any(|known| *known == space.name.as_str());
                    is_tool.then(|| Some(format!("{}.{}", space.name, member.property.name)))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

fn method<'a>(call: &CallExpression<'a>) -> Option<&'a str> {
    match &call.callee {
        Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        _ => None,
    }
}
