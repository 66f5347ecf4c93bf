//! Calls: tools, makers of code, callbacks of JSON, wasteful constants, wishes.

use oxc_ast::ast::{
    Argument, BinaryExpression, BinaryOperator, CallExpression, Expression, NewExpression,
    ObjectPropertyKind,
};
use oxc_span::GetSpan as _;

use super::Rules;
use crate::code::IssueCode;
use crate::preset::{ArgumentKind, Targets};

/// Items an array may be asked for by a constant.
pub(super) const ARRAY_ITEMS_MAX: f64 = 1_000_000.0;
/// Items `fill` may be asked for, or rounds of `repeat`.
const REPEATS_MAX: f64 = 100_000.0;
/// The exponent of a big integer.
const EXPONENT_MAX: f64 = 10_000.0;

impl<'a> Rules<'_, 'a> {
    pub(super) fn call(&mut self, call: &CallExpression<'a>) {
        match &call.callee {
            Expression::Identifier(identifier) => {
                let name = identifier.name.as_str();
                if self.names.is_global(identifier) {
                    match name {
                        "callTool" => self.target(call),
                        "setTimeout" | "setInterval" | "setImmediate" => self.timer(call),
                        "Array" => self.array(&call.arguments),
                        _ => {}
                    }
                    self.wish(name, call);
                }
            }
            Expression::StaticMemberExpression(member) => {
                let method = member.property.name.as_str();
                self.method(&member.object, method, call);
            }
            Expression::ComputedMemberExpression(member) => {
                let method = self
                    .fold()
                    .constant(&member.expression)
                    .map(|method| method.text());
                if let Some(method) = method {
                    self.method(&member.object, &method, call);
                }
            }
            _ => {}
        }
    }

    pub(super) fn new_expression(&mut self, new: &NewExpression<'a>) {
        if let Expression::Identifier(identifier) = &new.callee
            && identifier.name == "Array"
            && self.names.is_global(identifier)
        {
            self.array(&new.arguments);
        }
    }

    /// The tool a call names.
    fn target(&mut self, call: &CallExpression<'a>) {
        if self.preset.targets == Targets::Unchecked {
            return;
        }
        let Some(first) = call.arguments.first() else {
            self.error(IssueCode::MissingCallTarget, call.span, || {
                String::from("`callTool` needs the name of a tool; write `callTool('name', { … })`")
            });
            return;
        };
        let Some(first) = first.as_expression() else {
            self.error(IssueCode::DynamicCallTarget, call.span, || {
                String::from("the name of the tool must be written out, not spread from an array")
            });
            return;
        };
        let is_literal = match first {
            Expression::StringLiteral(_) => true,
            Expression::TemplateLiteral(text) => text.expressions.is_empty(),
            _ => false,
        };
        // Both findings may apply, so there is no return: the name is still looked up.
        if !is_literal && self.preset.targets == Targets::Literal {
            self.error(IssueCode::DynamicCallTarget, first.span(), || {
                String::from(
                    "the name of the tool must be a plain string here, such as `'users:list'`",
                )
            });
        }
        let Some(tools) = &self.preset.tools else {
            return;
        };
        for name in self.fold().keys(first) {
            if tools.iter().any(|tool| matches(tool, &name)) {
                continue;
            }
            self.error(IssueCode::UnknownToolName, first.span(), || {
                let shown = model::text::elided(&name, 80);
                match model::nearest::nearest(&shown, tools.iter().map(String::as_str)) {
                    Some(nearest) => format!(
                        "`{shown}` is not a tool this script may call; did you mean `{nearest}`?"
                    ),
                    None => format!("`{shown}` is not a tool this script may call"),
                }
            });
        }
    }

    fn timer(&mut self, call: &CallExpression<'a>) {
        let is_text = call
            .arguments
            .first()
            .and_then(Argument::as_expression)
            .is_some_and(|first| self.fold().constant(first).is_some());
        if is_text {
            self.error(IssueCode::NoEval, call.span, || {
                String::from("a timer cannot be given code as text")
            });
        }
    }

    fn method(&mut self, object: &Expression<'a>, method: &str, call: &CallExpression<'a>) {
        if !self.preset.is_agent_script {
            return;
        }
        self.regex_method(method, call);
        let first = call.arguments.first().and_then(Argument::as_expression);
        match method {
            "stringify" | "parse" if self.is_global_named(object, "JSON") => self.json(call),
            "repeat" => {
                if let Some(first) = first {
                    self.large(first, REPEATS_MAX, "`repeat`");
                }
            }
            "padStart" | "padEnd" => {
                if let Some(first) = first {
                    self.large(first, REPEATS_MAX, "padding");
                }
            }
            "fill" => self.check_fill(object),
            "from" if self.is_global_named(object, "Array") => self.array_from(first),
            _ => {}
        }
    }

    fn json(&mut self, call: &CallExpression<'a>) {
        let Some(second) = call.arguments.get(1) else {
            return;
        };
        let is_harmless = match second.as_expression() {
            Some(
                Expression::NullLiteral(_)
                | Expression::ArrayExpression(_)
                | Expression::StringLiteral(_)
                | Expression::NumericLiteral(_),
            ) => true,
            Some(other) => matches!(
                self.fold().constant(other),
                Some(
                    crate::fold::Constant::Undefined
                        | crate::fold::Constant::Null
                        | crate::fold::Constant::List(_)
                )
            ),
            None => false,
        };
        if !is_harmless {
            self.error(IssueCode::JsonCallbackNotAllowed, second.span(), || {
                String::from(
                    "a function cannot be given here; change the value before or after with `map`",
                )
            });
        }
    }

    fn array(&mut self, arguments: &[Argument<'a>]) {
        if let ([only], true) = (arguments, self.preset.is_agent_script)
            && let Some(only) = only.as_expression()
        {
            self.large(only, ARRAY_ITEMS_MAX, "`Array`");
        }
    }

    fn check_fill(&mut self, object: &Expression<'a>) {
        let arguments = match object {
            Expression::CallExpression(call) if self.is_global_named(&call.callee, "Array") => {
                &call.arguments
            }
            Expression::NewExpression(new) if self.is_global_named(&new.callee, "Array") => {
                &new.arguments
            }
            _ => return,
        };
        if let Some(length) = arguments.first().and_then(Argument::as_expression) {
            self.large(length, REPEATS_MAX, "`fill`");
        }
    }

    fn array_from(&mut self, first: Option<&Expression<'a>>) {
        let Some(Expression::ObjectExpression(object)) = first else {
            return;
        };
        for property in &object.properties {
            if let ObjectPropertyKind::ObjectProperty(property) = property
                && property.key.is_specific_static_name("length")
            {
                self.large(&property.value, ARRAY_ITEMS_MAX, "`Array.from`");
            }
        }
    }

    pub(super) fn power(&mut self, binary: &BinaryExpression<'a>) {
        if !self.preset.is_agent_script || binary.operator != BinaryOperator::Exponential {
            return;
        }
        if let Expression::BigIntLiteral(exponent) = &binary.right {
            let is_large = exponent
                .value
                .parse::<f64>()
                .is_ok_and(|exponent| exponent > EXPONENT_MAX);
            if is_large {
                self.error(IssueCode::ResourceExhaustion, binary.span, || {
                    format!("an exponent of more than {EXPONENT_MAX} takes too much memory")
                });
            }
        }
    }

    /// A constant that asks for far too much.
    pub(super) fn large(&mut self, size: &Expression<'a>, most: f64, what: &str) {
        let number = self.fold().constant(size).and_then(|size| match size {
            crate::fold::Constant::Number(number) => Some(number),
            _ => None,
        });
        if number.is_some_and(|number| number > most) {
            self.error(IssueCode::ResourceExhaustion, size.span(), || {
                format!("{what} is asked for more than {most}; take a smaller number")
            });
        }
    }

    // Wishes.

    fn wish(&mut self, name: &str, call: &CallExpression<'a>) {
        let preset = self.preset;
        for (index, wish) in preset
            .calls
            .iter()
            .enumerate()
            .filter(|(_, wish)| wish.function == name)
        {
            if let Some(count) = self.calls.get_mut(index) {
                *count += 1;
            }
            let count = call.arguments.len();
            if count < wish.arguments_min || count > wish.arguments_max {
                let (least, most) = (wish.arguments_min, wish.arguments_max);
                self.error(IssueCode::InvalidArgumentCount, call.span, || {
                    format!("`{name}` takes {least} to {most} arguments, not {count}")
                });
            }
            for (argument, kind) in call.arguments.iter().zip(&wish.kinds) {
                let visible = argument.as_expression().and_then(visible_kind);
                if *kind != ArgumentKind::Any && visible.is_some_and(|visible| visible != *kind) {
                    self.error(IssueCode::InvalidArgumentType, argument.span(), || {
                        format!("`{name}` does not take this kind of argument here")
                    });
                }
            }
        }
    }

    /// Reports required calls that are missing.
    pub(super) fn wishes(&mut self) {
        let preset = self.preset;
        for (index, wish) in preset.calls.iter().enumerate() {
            let count = self.calls.get(index).copied().unwrap_or(0);
            let name = &wish.function;
            if count < wish.calls_min {
                self.marks
                    .error(IssueCode::RequiredFunctionNotCalled, 0, || {
                        format!("`{name}` must be called")
                    });
            }
            if count > wish.calls_max {
                let most = wish.calls_max;
                self.marks
                    .error(IssueCode::FunctionCalledTooManyTimes, 0, || {
                        format!("`{name}` is called in {count} places; at most {most} are allowed")
                    });
            }
        }
    }
}

fn visible_kind(expression: &Expression<'_>) -> Option<ArgumentKind> {
    match expression {
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Some(ArgumentKind::String),
        Expression::NumericLiteral(_) => Some(ArgumentKind::Number),
        Expression::ObjectExpression(_) => Some(ArgumentKind::Object),
        Expression::ArrayExpression(_) => Some(ArgumentKind::Array),
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => {
            Some(ArgumentKind::Function)
        }
        _ => None,
    }
}

/// Whether a name fits a pattern with `*`. Linear: a star gives back once only.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(first) = pieces.next() else {
        return false;
    };
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        if let Some(piece) = last.replace(piece) {
            match rest.split_once(piece) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    match last {
        None => rest.is_empty(),
        Some(last) => rest.ends_with(last),
    }
}
