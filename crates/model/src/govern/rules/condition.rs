//! The `when` of a rule: one expression in a small part of the Common Expression
//! Language, on `args`, `caller`, `tool`, `risk` and `time`.
//!
//! It is our own reader and evaluator and not the `cel` package, because that
//! one counts no steps: `args.list.all(a, args.list.all(b, …))` on a list the
//! caller sends would run for as long as the caller likes. Here everything is
//! bounded: the text, its depth and parts when it is read, the steps when it is
//! evaluated. It always ends, and ends in true, false, or a reason why neither.
//!
//! Where CEL would quietly say false (a number against text, a result that is
//! not a number) this says that it cannot tell, and the rule denies.

mod eval;
mod lexer;
mod parser;
mod value;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::govern::action::Action;
use crate::limits;
use crate::policy::risk::Level;

pub use parser::ConditionFault;

/// The condition under which a rule applies to a call.
#[derive(Clone)]
pub struct Condition {
    text: String,
    test: Test,
}

/// A condition in Rust, of a program that embeds the engine.
pub type Predicate = Arc<dyn Fn(&ConditionScope<'_>) -> bool + Send + Sync>;

#[derive(Clone)]
enum Test {
    Expression(Expr),
    Predicate(Predicate),
}

/// The input of a condition.
#[derive(Clone, Debug)]
pub struct ConditionScope<'a> {
    /// The arguments, checked.
    pub args: &'a Map<String, Json>,
    /// Who calls.
    pub caller_name: &'a str,
    /// `owner` or `named`.
    pub caller_kind: &'a str,
    /// The door, such as `mcp`.
    pub caller_door: &'a str,
    /// The caller's groups.
    pub caller_groups: &'a [String],
    /// The caller's level, or nothing.
    pub caller_level: &'a str,
    /// The tool's name.
    pub tool_name: &'a str,
    /// Its category, or nothing.
    pub tool_category: &'a str,
    /// Its tags.
    pub tool_tags: &'a [String],
    /// Its action types.
    pub tool_actions: &'a [Action],
    /// The badge.
    pub risk: Level,
    /// Milliseconds since 1970.
    pub at_ms: i64,
}

/// Why a condition is neither true nor false.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unevaluable {
    /// A part of it has no value for this call.
    #[error("{0}")]
    Undefined(String),
    /// It is something else than true or false.
    #[error("it is {0}, not true or false")]
    NotBoolean(&'static str),
    /// It takes more steps than a rule may.
    #[error("it takes more than {} steps", limits::CONDITION_STEPS_MAX)]
    TooCostly,
    /// It is a predicate of the embedding program, and panicked.
    #[error("the program's predicate panicked")]
    Panicked,
}

impl Condition {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Condition, ConditionFault> {
        let root = parser::parse(text)?;
        Ok(Condition {
            text: text.to_owned(),
            test: Test::Expression(root),
        })
    }

    /// A condition in Rust. `name` takes the place of an expression's text.
    pub(crate) fn predicate(predicate: Predicate, name: &str) -> Condition {
        Condition {
            text: name.to_owned(),
            test: Test::Predicate(predicate),
        }
    }

    /// `!(tool.name in [...])`. Made here and not from text, so that a list may be
    /// longer than an expression in a file; how long is bounded by its steps.
    pub(crate) fn tool_is_none_of(names: &[String]) -> Condition {
        let quoted: Vec<_> = names.iter().map(|name| lexer::quote(name)).collect();
        let literals = names.iter().cloned().map(Literal::Text);
        let list = Expr::List(literals.map(Expr::Literal).collect());
        let name = Expr::Root(Root::World(World::ToolName));
        let is_in = Expr::Compare(Comparison::In, Box::new(name), Box::new(list));
        Condition {
            text: format!("!(tool.name in [{}])", quoted.join(", ")),
            test: Test::Expression(Expr::Not(Box::new(is_in))),
        }
    }

    /// The expression as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is true.
    pub fn holds(&self, scope: &ConditionScope<'_>) -> Result<bool, Unevaluable> {
        match &self.test {
            Test::Expression(root) => eval::boolean(root, scope),
            // A panic denies. State that it leaves behind is the program's own.
            Test::Predicate(predicate) => catch_unwind(AssertUnwindSafe(|| predicate(scope)))
                .map_err(|_| Unevaluable::Panicked),
        }
    }

    /// The expression, where it is one.
    fn expression(&self) -> Option<&Expr> {
        match &self.test {
            Test::Expression(root) => Some(root),
            Test::Predicate(_) => None,
        }
    }

    /// Its value where it depends on no call: `true`, `1 > 2`.
    #[must_use]
    pub fn constant(&self) -> Option<bool> {
        let scope = ConditionScope {
            args: &Map::new(),
            caller_name: "",
            caller_kind: "",
            caller_door: "",
            caller_groups: &[],
            caller_level: "",
            tool_name: "",
            tool_category: "",
            tool_tags: &[],
            tool_actions: &[],
            risk: Level::L0,
            at_ms: 0,
        };
        // Without roots the scope above is never looked at.
        let free = !self.expression()?.mentions_world();
        free.then(|| self.holds(&scope).ok()).flatten()
    }

    /// Whether it looks at nothing but arguments.
    #[must_use]
    pub fn is_about_arguments_only(&self) -> bool {
        self.expression().is_some_and(Expr::only_arguments)
    }

    /// Whether it looks at arguments, by name or all together. A predicate may.
    #[must_use]
    pub fn looks_at_arguments(&self) -> bool {
        // Its text does not say what a predicate looks at.
        self.expression()
            .is_none_or(|root| root.any(&|part| matches!(part, Expr::Root(Root::Args))))
    }

    /// Whether it counts the arguments where their length may be meant.
    #[must_use]
    pub fn counts_arguments(&self) -> bool {
        let counts = |part: &Expr| matches!(part, Expr::Function(Function::Size, of) if matches!(**of, Expr::Root(Root::Args)));
        self.expression().is_some_and(|root| root.any(&counts))
    }

    /// The arguments it names, such as `amount` in `args.amount`.
    #[must_use]
    pub fn arguments(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if let Some(root) = self.expression() {
            root.argument_names(&mut names);
        }
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

// The text of an expression says all there is to say, and a compiled pattern cannot be
// compared. A predicate is the same only as itself.
impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        let is_same = match (&self.test, &other.test) {
            (Test::Expression(_), Test::Expression(_)) => true,
            (Test::Predicate(one), Test::Predicate(two)) => Arc::ptr_eq(one, two),
            (Test::Expression(_), Test::Predicate(_))
            | (Test::Predicate(_), Test::Expression(_)) => false,
        };
        is_same && self.text == other.text
    }
}

impl Eq for Condition {}

/// One part of an expression.
#[derive(Clone, Debug)]
enum Expr {
    Literal(Literal),
    Root(Root),
    /// A name that `all` or `exists` gives to each member; counted from outside.
    Bound(usize),
    Field(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Arithmetic(Operation, Box<Expr>, Box<Expr>),
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    Has(Box<Expr>, String),
    Function(Function, Box<Expr>),
    Method(Method, Box<Expr>, Box<Expr>),
    Matches(Box<Expr>, regex::Regex),
    Each(Quantifier, Box<Expr>, usize, Box<Expr>),
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
}

/// The roots of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Args,
    Risk,
    World(World),
}

/// One field of `caller`, `tool` or `time`. Known when the rule is read, so an unknown
/// one is reported then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    CallerName,
    CallerKind,
    CallerDoor,
    CallerGroups,
    CallerLevel,
    ToolName,
    ToolCategory,
    ToolTags,
    ToolActions,
    TimeMs,
    TimeHour,
    TimeMinute,
    TimeWeekday,
    TimeDate,
}

/// Each field with its spelling.
const WORLD: &[(&str, &str, World)] = &[
    ("caller", "name", World::CallerName),
    ("caller", "kind", World::CallerKind),
    ("caller", "door", World::CallerDoor),
    ("caller", "groups", World::CallerGroups),
    ("caller", "level", World::CallerLevel),
    ("tool", "name", World::ToolName),
    ("tool", "category", World::ToolCategory),
    ("tool", "tags", World::ToolTags),
    ("tool", "actions", World::ToolActions),
    ("time", "ms", World::TimeMs),
    ("time", "hour", World::TimeHour),
    ("time", "minute", World::TimeMinute),
    ("time", "weekday", World::TimeWeekday),
    ("time", "date", World::TimeDate),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    In,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Size,
    Int,
    Double,
    Text,
    Lower,
    JsonSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    StartsWith,
    EndsWith,
    Contains,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantifier {
    Every,
    Some,
    One,
}

impl Expr {
    /// The parts of this part.
    fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Literal(_) | Expr::Root(_) | Expr::Bound(_) => Vec::new(),
            Expr::Field(of, _)
            | Expr::Not(of)
            | Expr::Negate(of)
            | Expr::Has(of, _)
            | Expr::Function(_, of)
            | Expr::Matches(of, _) => vec![of],
            Expr::List(many) | Expr::All(many) | Expr::Any(many) => many.iter().collect(),
            Expr::Index(left, right)
            | Expr::Compare(_, left, right)
            | Expr::Arithmetic(_, left, right)
            | Expr::Method(_, left, right)
            | Expr::Each(_, left, _, right) => vec![left, right],
            Expr::Choose(test, yes, no) => vec![test, yes, no],
        }
    }

    /// Whether some part is so.
    fn any(&self, is_so: &dyn Fn(&Expr) -> bool) -> bool {
        is_so(self) || self.parts().into_iter().any(|part| part.any(is_so))
    }

    fn mentions_world(&self) -> bool {
        self.any(&|part| matches!(part, Expr::Root(_)))
    }

    fn only_arguments(&self) -> bool {
        let foreign = matches!(self, Expr::Root(Root::Risk | Root::World(_)));
        !foreign && self.parts().into_iter().all(Expr::only_arguments)
    }

    fn argument_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        if let Expr::Field(of, name) | Expr::Has(of, name) = self
            && matches!(**of, Expr::Root(Root::Args))
        {
            names.push(name);
        }
        if let Expr::Index(of, index) = self
            && let (Expr::Root(Root::Args), Expr::Literal(Literal::Text(name))) = (&**of, &**index)
        {
            names.push(name);
        }
        for part in self.parts() {
            part.argument_names(names);
        }
    }

    /// The type of its value, if the text determines it.
    fn kind(&self) -> Option<&'static str> {
        match self {
            Expr::Literal(Literal::Null) => Some("null"),
            Expr::Literal(Literal::Int(_) | Literal::Double(_))
            | Expr::Negate(_)
            | Expr::Function(
                Function::Size | Function::Int | Function::Double | Function::JsonSize,
                _,
            ) => Some("a number"),
            Expr::Literal(Literal::Text(_))
            | Expr::Root(Root::Risk)
            | Expr::Function(Function::Text | Function::Lower, _) => Some("text"),
            Expr::List(_) => Some("a list"),
            Expr::Root(Root::Args) => Some("an object"),
            Expr::Literal(Literal::Bool(_))
            | Expr::Root(Root::World(_))
            | Expr::Bound(_)
            | Expr::Field(..)
            | Expr::Index(..)
            | Expr::Not(_)
            | Expr::All(_)
            | Expr::Any(_)
            | Expr::Compare(..)
            | Expr::Arithmetic(..)
            | Expr::Choose(..)
            | Expr::Has(..)
            | Expr::Method(..)
            | Expr::Matches(..)
            | Expr::Each(..) => None,
        }
    }
}

/// Any text at all, read as a condition and evaluated. Neither panics, and parsing the
/// same text twice gives the same.
pub fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (text, args) = text.split_once('\n').unwrap_or((&text, "{}"));
    let Ok(condition) = Condition::parse(text) else {
        return;
    };
    let args = serde_json::from_str::<Json>(args).unwrap_or_default();
    let empty = Map::new();
    let scope = ConditionScope {
        args: args.as_object().unwrap_or(&empty),
        caller_name: "ann",
        caller_kind: "named",
        caller_door: "mcp",
        caller_groups: &[],
        caller_level: "standard",
        tool_name: "web.fetch",
        tool_category: "WEB",
        tool_tags: &[],
        tool_actions: &[],
        risk: Level::L3,
        at_ms: 1_763_000_000_000,
    };
    let again = Condition::parse(condition.text()).map(|again| again.holds(&scope));
    assert_eq!(again, Ok(condition.holds(&scope)), "{text}");
}

#[cfg(test)]
mod tests;
