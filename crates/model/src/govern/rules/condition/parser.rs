//! Parses tokens to an expression. Errors that do not depend on a call are reported
//! here, with place and nearest name.

use super::lexer::{Kind, Token, tokens};
use super::{Comparison, Expr, Function, Literal, Method, Operation, Quantifier, Root, WORLD};
use crate::limits;
use crate::nearest::nearest;
use crate::text::elided;

/// A fault of an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConditionFault {
    /// Where, in bytes from the start of the expression.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: Option<String>,
}

const FUNCTIONS: &[(&str, Function)] = &[
    ("size", Function::Size),
    ("int", Function::Int),
    ("double", Function::Double),
    ("string", Function::Text),
    ("lowerAscii", Function::Lower),
    ("jsonSize", Function::JsonSize),
];
const METHODS: &[(&str, Method)] = &[
    ("startsWith", Method::StartsWith),
    ("endsWith", Method::EndsWith),
    ("contains", Method::Contains),
];
const QUANTIFIERS: &[(&str, Quantifier)] = &[
    ("all", Quantifier::Every),
    ("exists", Quantifier::Some),
    ("exists_one", Quantifier::One),
];
/// Names that are listed where none is near, at most.
const LISTED_MAX: usize = 8;

const ROOTS: &[&str] = &["args", "caller", "tool", "risk", "time", "has"];

pub(super) fn parse(text: &str) -> Result<Expr, ConditionFault> {
    if text.len() > limits::CONDITION_BYTES_MAX {
        let message = format!(
            "the condition is longer than {} bytes",
            limits::CONDITION_BYTES_MAX
        );
        return Err(ConditionFault {
            at: 0,
            message,
            fix: None,
        });
    }
    let tokens = tokens(text)?;
    if tokens.len() > limits::CONDITION_WORDS_MAX {
        let message = format!(
            "the condition has more than {} words and marks",
            limits::CONDITION_WORDS_MAX
        );
        return Err(ConditionFault {
            at: 0,
            message,
            fix: None,
        });
    }
    let mut parser = Parser {
        tokens: &tokens,
        next: 0,
        depth: 0,
        bound: Vec::new(),
    };
    let root = parser.expression()?;
    if *parser.peek() != Kind::End {
        return Err(parser.unexpected());
    }
    match root.kind() {
        Some(kind) => Err(ConditionFault {
            at: 0,
            message: format!("the condition is {kind}, not true or false"),
            fix: None,
        }),
        None => Ok(root),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    depth: usize,
    /// The names given by `all` and `exists` around this place.
    bound: Vec<String>,
}

impl Parser<'_> {
    fn peek(&self) -> &Kind {
        self.tokens
            .get(self.next)
            .map_or(&Kind::End, |token| &token.kind)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |token| token.at)
    }

    fn take(&mut self) -> Kind {
        let kind = self.peek().clone();
        self.next += 1;
        kind
    }

    fn eat(&mut self, mark: &'static str) -> bool {
        let found = *self.peek() == Kind::Mark(mark);
        self.next += usize::from(found);
        found
    }

    fn need(&mut self, mark: &'static str) -> Result<(), ConditionFault> {
        if self.eat(mark) {
            return Ok(());
        }
        let seen = shown(self.peek());
        Err(self.fault(format!("expected `{mark}`, found {seen}"), None))
    }

    fn fault(&self, message: String, fix: Option<String>) -> ConditionFault {
        ConditionFault {
            at: self.at(),
            message,
            fix,
        }
    }

    fn unexpected(&self) -> ConditionFault {
        let fix = match self.peek() {
            Kind::Name(word) if word == "and" => Some("write `&&`".to_owned()),
            Kind::Name(word) if word == "or" => Some("write `||`".to_owned()),
            Kind::Mark("==" | "!=" | "<" | "<=" | ">" | ">=") => {
                Some("put brackets around one of the two comparisons".to_owned())
            }
            _ => None,
        };
        self.fault(format!("{} is not expected here", shown(self.peek())), fix)
    }

    /// One level of brackets, signs or choices deeper.
    fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, ConditionFault>,
    ) -> Result<T, ConditionFault> {
        if self.depth == limits::CONDITION_DEPTH_MAX {
            let message = format!(
                "the condition nests more than {} deep",
                limits::CONDITION_DEPTH_MAX
            );
            return Err(self.fault(message, None));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn expression(&mut self) -> Result<Expr, ConditionFault> {
        self.deeper(|parser| {
            let test = parser.any()?;
            if !parser.eat("?") {
                return Ok(test);
            }
            let yes = parser.any()?;
            parser.need(":")?;
            let no = parser.expression()?;
            Ok(Expr::Choose(Box::new(test), Box::new(yes), Box::new(no)))
        })
    }

    fn any(&mut self) -> Result<Expr, ConditionFault> {
        let mut many = vec![self.all()?];
        while self.eat("||") {
            many.push(self.all()?);
        }
        Ok(one_or(many, Expr::Any))
    }

    fn all(&mut self) -> Result<Expr, ConditionFault> {
        let mut many = vec![self.comparison()?];
        while self.eat("&&") {
            many.push(self.comparison()?);
        }
        Ok(one_or(many, Expr::All))
    }

    fn comparison(&mut self) -> Result<Expr, ConditionFault> {
        let left = self.sum()?;
        let comparison = match self.peek() {
            Kind::Mark("==") => Comparison::Equal,
            Kind::Mark("!=") => Comparison::Unequal,
            Kind::Mark("<") => Comparison::Less,
            Kind::Mark("<=") => Comparison::AtMost,
            Kind::Mark(">") => Comparison::More,
            Kind::Mark(">=") => Comparison::AtLeast,
            Kind::Name(word) if word == "in" => Comparison::In,
            _ => return Ok(left),
        };
        self.take();
        let right = self.sum()?;
        Ok(Expr::Compare(comparison, Box::new(left), Box::new(right)))
    }

    fn sum(&mut self) -> Result<Expr, ConditionFault> {
        self.chain(
            &[("+", Operation::Add), ("-", Operation::Subtract)],
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Expr, ConditionFault> {
        self.chain(
            &[
                ("*", Operation::Multiply),
                ("/", Operation::Divide),
                ("%", Operation::Remainder),
            ],
            Self::parse_unary,
        )
    }

    /// `a + b + c` is `(a + b) + c`: each step is one level for the evaluator, so
    /// it counts as one here.
    fn chain(
        &mut self,
        operations: &[(&'static str, Operation)],
        inner: fn(&mut Self) -> Result<Expr, ConditionFault>,
    ) -> Result<Expr, ConditionFault> {
        let mut left = inner(self)?;
        let mut links = 0;
        while let Some((_, operation)) = operations.iter().find(|(mark, _)| self.eat(mark)) {
            links += 1;
            if links > limits::CONDITION_DEPTH_MAX {
                let message = format!(
                    "more than {} operations in a row",
                    limits::CONDITION_DEPTH_MAX
                );
                return Err(self.fault(message, None));
            }
            let right = inner(self)?;
            left = Expr::Arithmetic(*operation, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn parse_unary(&mut self) -> Result<Expr, ConditionFault> {
        if self.eat("!") {
            // `!!!!…` recurses without a bracket, so each sign counts as a level.
            return self.deeper(|parser| Ok(Expr::Not(Box::new(parser.parse_unary()?))));
        }
        if self.eat("-") {
            return self.deeper(|parser| Ok(Expr::Negate(Box::new(parser.parse_unary()?))));
        }
        self.member()
    }

    fn member(&mut self) -> Result<Expr, ConditionFault> {
        let mut of = self.primary()?;
        let mut links = 0;
        loop {
            links += 1;
            if links > limits::CONDITION_DEPTH_MAX {
                // As in `chain`: each link is a level for the evaluator.
                let message = format!("more than {} fields in a row", limits::CONDITION_DEPTH_MAX);
                return Err(self.fault(message, None));
            }
            if self.eat("[") {
                let index = self.expression()?;
                self.need("]")?;
                of = Expr::Index(Box::new(of), Box::new(index));
            } else if self.eat(".") {
                let at = self.at();
                let Kind::Name(name) = self.take() else {
                    // Back to the token, so that the fault points at it.
                    self.next -= 1;
                    return Err(self.fault("a name is needed after `.`".to_owned(), None));
                };
                of = if self.eat("(") {
                    self.method(of, &name, at)?
                } else {
                    Expr::Field(Box::new(of), name)
                };
            } else {
                return Ok(of);
            }
        }
    }

    fn method(&mut self, of: Expr, name: &str, at: usize) -> Result<Expr, ConditionFault> {
        let of = Box::new(of);
        if let Some((_, quantifier)) = QUANTIFIERS.iter().find(|(known, _)| *known == name) {
            return self.each(*quantifier, of);
        }
        if let Some((_, method)) = METHODS.iter().find(|(known, _)| *known == name) {
            let argument = self.expression()?;
            self.need(")")?;
            return Ok(Expr::Method(*method, of, Box::new(argument)));
        }
        if let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
            self.need(")")?;
            return applied(*function, of, at);
        }
        if name == "matches" {
            return self.pattern(of);
        }
        let known = QUANTIFIERS.iter().map(|(name, _)| *name);
        let known = known.chain(METHODS.iter().map(|(name, _)| *name));
        let known = known.chain(FUNCTIONS.iter().map(|(name, _)| *name));
        Err(unknown(at, "function", name, known.chain(["matches"])))
    }

    /// `list.all(x, …)`.
    fn each(&mut self, quantifier: Quantifier, of: Box<Expr>) -> Result<Expr, ConditionFault> {
        let Kind::Name(name) = self.peek().clone() else {
            return Err(self.fault("a name for each member is needed".to_owned(), None));
        };
        if ROOTS.contains(&name.as_str()) {
            let message = format!("`{name}` already has a meaning");
            return Err(self.fault(message, Some("use another name".to_owned())));
        }
        self.take();
        self.need(",")?;
        // A number instead of the name: the evaluator looks nothing up.
        let slot = self.bound.len();
        self.bound.push(name);
        let inner = self.expression();
        // Before the fault is passed on, so that the names stay in step.
        self.bound.pop();
        let inner = inner?;
        self.need(")")?;
        Ok(Expr::Each(quantifier, of, slot, Box::new(inner)))
    }

    /// The pattern must be a literal: it is compiled once, and the operator, not the
    /// caller, decides its size.
    fn pattern(&mut self, of: Box<Expr>) -> Result<Expr, ConditionFault> {
        let at = self.at();
        let Kind::Text(pattern) = self.peek().clone() else {
            let message = "`matches` needs its pattern as a text in quotes".to_owned();
            return Err(self.fault(message, None));
        };
        self.take();
        self.need(")")?;
        let compiled = regex::RegexBuilder::new(&pattern)
            .size_limit(limits::CONDITION_PATTERN_BYTES_MAX)
            .dfa_size_limit(limits::CONDITION_PATTERN_BYTES_MAX)
            .build();
        match compiled {
            Ok(pattern) => Ok(Expr::Matches(of, pattern)),
            Err(regex::Error::CompiledTooBig(_)) => Err(ConditionFault {
                at,
                message: "the pattern is too large".to_owned(),
                fix: None,
            }),
            Err(_) => Err(ConditionFault {
                at,
                message: format!("`{}` is no pattern", elided(&pattern, 60)),
                fix: Some("write a backslash in `r'…'`, so that it stays one".to_owned()),
            }),
        }
    }

    fn primary(&mut self) -> Result<Expr, ConditionFault> {
        let at = self.at();
        match self.take() {
            Kind::Int(number) => Ok(Expr::Literal(Literal::Int(number))),
            Kind::Double(number) => Ok(Expr::Literal(Literal::Double(number))),
            Kind::Text(text) => Ok(Expr::Literal(Literal::Text(text))),
            Kind::Mark("(") => {
                let inner = self.expression()?;
                self.need(")")?;
                Ok(inner)
            }
            Kind::Mark("[") => self.list(),
            Kind::Name(name) => self.parse_name(&name, at),
            Kind::Mark(_) | Kind::End => {
                self.next -= 1;
                let seen = shown(self.peek());
                Err(self.fault(format!("expected a value, found {seen}"), None))
            }
        }
    }

    fn list(&mut self) -> Result<Expr, ConditionFault> {
        let mut items = Vec::new();
        while !self.eat("]") {
            if !items.is_empty() {
                self.need(",")?;
            }
            items.push(self.expression()?);
        }
        Ok(Expr::List(items))
    }

    fn parse_name(&mut self, name: &str, at: usize) -> Result<Expr, ConditionFault> {
        match name {
            "true" => return Ok(Expr::Literal(Literal::Bool(true))),
            "false" => return Ok(Expr::Literal(Literal::Bool(false))),
            "null" => return Ok(Expr::Literal(Literal::Null)),
            _ => {}
        }
        if self.eat("(") {
            return self.function(name, at);
        }
        // From the inside: an inner name hides an outer one.
        if let Some(slot) = self.bound.iter().rposition(|bound| bound == name) {
            return Ok(Expr::Bound(slot));
        }
        match name {
            "args" => Ok(Expr::Root(Root::Args)),
            "risk" => Ok(Expr::Root(Root::Risk)),
            "caller" | "tool" | "time" => self.world(name),
            _ => {
                let bound = self.bound.iter().map(String::as_str);
                let known = ROOTS.iter().copied().filter(|root| *root != "has");
                Err(unknown(at, "name", name, known.chain(bound)))
            }
        }
    }

    fn world(&mut self, of: &str) -> Result<Expr, ConditionFault> {
        let fields = || WORLD.iter().filter(|(root, _, _)| *root == of);
        let names: Vec<_> = fields().map(|(_, field, _)| *field).collect();
        if !self.eat(".") {
            let message = format!("`{of}` needs one of its fields: {}", names.join(", "));
            return Err(self.fault(message, None));
        }
        let at = self.at();
        let Kind::Name(field) = self.take() else {
            self.next -= 1;
            return Err(self.fault("a name is needed after `.`".to_owned(), None));
        };
        match fields().find(|(_, known, _)| *known == field) {
            Some((_, _, world)) => Ok(Expr::Root(Root::World(*world))),
            None => Err(unknown(at, &format!("field of `{of}`"), &field, names)),
        }
    }

    fn function(&mut self, name: &str, at: usize) -> Result<Expr, ConditionFault> {
        if name == "has" {
            let inside = self.at();
            let inner = self.expression()?;
            self.need(")")?;
            return match inner {
                Expr::Field(of, field) => Ok(Expr::Has(of, field)),
                _ => Err(ConditionFault {
                    at: inside,
                    message: "`has` needs a field, such as `has(args.amount)`".to_owned(),
                    fix: None,
                }),
            };
        }
        let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let known = FUNCTIONS.iter().map(|(name, _)| *name).chain(["has"]);
            return Err(unknown(at, "function", name, known));
        };
        let inner = self.expression()?;
        self.need(")")?;
        applied(*function, Box::new(inner), at)
    }
}

/// Applies a function. An argument that it never accepts would deny every call, so it
/// is refused here.
fn applied(function: Function, of: Box<Expr>, at: usize) -> Result<Expr, ConditionFault> {
    let takes = match (function, of.kind()) {
        (_, None) | (Function::JsonSize, Some(_)) => true,
        (Function::Size, Some(kind)) => matches!(kind, "text" | "a list" | "an object"),
        (Function::Int | Function::Double | Function::Text, Some(kind)) => {
            matches!(kind, "text" | "a number")
        }
        (Function::Lower, Some(kind)) => kind == "text",
    };
    if takes {
        return Ok(Expr::Function(function, of));
    }
    let name = FUNCTIONS.iter().find(|(_, known)| *known == function);
    let name = name.map_or("", |(name, _)| name);
    let kind = of.kind().unwrap_or("");
    let is_arguments = matches!(*of, Expr::Root(Root::Args));
    Err(ConditionFault {
        at,
        message: format!("`{name}` does not accept {kind}"),
        fix: is_arguments
            .then(|| "for the length of the arguments, write `jsonSize(args)`".to_owned()),
    })
}

fn one_or(mut many: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    // Popped to take the only one without a copy.
    match (many.len(), many.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            many.push(last);
            join(many)
        }
        (_, None) => join(many),
    }
}

fn unknown<'a>(
    at: usize,
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> ConditionFault {
    let known: Vec<_> = known.into_iter().collect();
    let fix = match nearest(name, known.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        // Few enough to read, so a person who guessed far off still learns them.
        None if !known.is_empty() && known.len() <= LISTED_MAX => {
            Some(format!("there are `{}`", known.join("`, `")))
        }
        None => None,
    };
    ConditionFault {
        at,
        message: format!("there is no {what} `{}`", elided(name, 60)),
        fix,
    }
}

fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Name(name) => format!("`{}`", elided(name, 40)),
        Kind::Int(number) => format!("`{number}`"),
        Kind::Double(number) => format!("`{number}`"),
        Kind::Text(_) => "a text".to_owned(),
        Kind::Mark(mark) => format!("`{mark}`"),
        Kind::End => "the end".to_owned(),
    }
}
