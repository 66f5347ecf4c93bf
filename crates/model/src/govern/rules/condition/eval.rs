//! Evaluates an expression for a call: true, false, or why neither.
//!
//! Every part costs a step, text costs by its length, and the steps are few. A part
//! without a value makes the whole undefined, unless the rest decides alone: `false &&
//! x` is false, `true || x` is true, in either order.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::value::{Value, order};
use super::{
    Comparison, ConditionScope, Expr, Function, Literal, Method, Operation, Quantifier, Root,
    Unevaluable, World,
};
use crate::limits;
use crate::text::elided;

type Answer<'a> = Result<Value<'a>, Unevaluable>;

pub(super) fn boolean<'a>(
    root: &'a Expr,
    scope: &'a ConditionScope<'a>,
) -> Result<bool, Unevaluable> {
    let mut run = Run {
        scope,
        left: limits::CONDITION_STEPS_MAX,
        bound: Vec::new(),
    };
    match run.value(root)? {
        Value::Bool(is) => Ok(is),
        other => Err(Unevaluable::NotBoolean(other.noun())),
    }
}

struct Run<'a> {
    scope: &'a ConditionScope<'a>,
    /// Steps left.
    left: usize,
    /// The current members of `all` and `exists`, from outside in.
    bound: Vec<Value<'a>>,
}

fn undefined<T>(message: impl Into<String>) -> Result<T, Unevaluable> {
    Err(Unevaluable::Undefined(message.into()))
}

impl<'a> Run<'a> {
    fn spend(&mut self, steps: usize) -> Result<(), Unevaluable> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                // Nothing is left: later parts must not go on with what a large one could
                // not use.
                self.left = 0;
                Err(Unevaluable::TooCostly)
            }
        }
    }

    fn spend_text(&mut self, text: &str, bytes_per_step: usize) -> Result<(), Unevaluable> {
        self.spend(text.len() / bytes_per_step)
    }

    fn value(&mut self, expr: &'a Expr) -> Answer<'a> {
        self.spend(1)?;
        match expr {
            Expr::Literal(literal) => Ok(plain(literal)),
            Expr::Root(root) => Ok(self.root(*root)),
            Expr::Bound(slot) => match self.bound.get(*slot).cloned() {
                Some(value) => {
                    // The value is copied, so its size is paid for.
                    self.spend(value.weight() / limits::CONDITION_TEXT_BYTES_PER_STEP)?;
                    Ok(value)
                }
                None => undefined("a name without a value"),
            },
            Expr::Field(of, name) => self.field(of, name),
            Expr::Index(of, index) => self.index(of, index),
            Expr::List(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.value(item)).collect();
                Ok(Value::Made(items?))
            }
            Expr::Not(of) => Ok(Value::Bool(!self.truth(of)?)),
            Expr::Negate(of) => match self.value(of)? {
                Value::Int(number) => whole(number.checked_neg()),
                Value::Double(number) => Ok(Value::Double(-number)),
                other => undefined(format!("{} has no negative", other.noun())),
            },
            Expr::All(many) => self.join(many, false),
            Expr::Any(many) => self.join(many, true),
            Expr::Compare(comparison, left, right) => {
                let left = self.value(left)?;
                let right = self.value(right)?;
                self.compare(*comparison, &left, &right).map(Value::Bool)
            }
            Expr::Arithmetic(operation, left, right) => {
                let left = self.value(left)?;
                let right = self.value(right)?;
                self.arithmetic(*operation, &left, &right)
            }
            Expr::Choose(test, yes, no) => {
                let chosen = if self.truth(test)? { yes } else { no };
                self.value(chosen)
            }
            Expr::Has(of, name) => match self.value(of)? {
                Value::Object(members) => Ok(Value::Bool(members.contains_key(name))),
                other => undefined(format!("{} has no fields", other.noun())),
            },
            Expr::Function(function, of) => {
                let of = self.value(of)?;
                self.function(*function, of)
            }
            Expr::Method(method, of, argument) => {
                let of = self.value(of)?;
                let argument = self.value(argument)?;
                self.method(*method, &of, &argument)
            }
            Expr::Matches(of, pattern) => match self.value(of)? {
                Value::Text(text) => {
                    // A pattern costs more by the byte than a comparison.
                    self.spend_text(&text, limits::CONDITION_PATTERN_BYTES_PER_STEP)?;
                    Ok(Value::Bool(pattern.is_match(&text)))
                }
                other => undefined(format!("`matches` needs text, not {}", other.noun())),
            },
            Expr::Each(quantifier, of, slot, inner) => self.each(*quantifier, of, *slot, inner),
        }
    }

    fn truth(&mut self, expr: &'a Expr) -> Result<bool, Unevaluable> {
        match self.value(expr)? {
            Value::Bool(is) => Ok(is),
            other => Err(Unevaluable::NotBoolean(other.noun())),
        }
    }

    /// `&&` and `||`: one member that decides does so whatever the others are.
    fn join(&mut self, many: &'a [Expr], deciding: bool) -> Answer<'a> {
        let mut spoiled = None;
        for expr in many {
            match self.truth(expr) {
                Ok(is) if is == deciding => return Ok(Value::Bool(deciding)),
                Ok(_) => {}
                // The budget is spent: no other member can be looked at.
                Err(Unevaluable::TooCostly) => return Err(Unevaluable::TooCostly),
                Err(why) => spoiled = spoiled.or(Some(why)),
            }
        }
        spoiled.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    fn root(&self, root: Root) -> Value<'a> {
        let scope = self.scope;
        let text = |text: &'a str| Value::Text(Cow::Borrowed(text));
        // Rounds down before 1970 as well.
        let minutes = scope.at_ms.div_euclid(60_000);
        match root {
            Root::Args => Value::Object(scope.args),
            Root::Risk => text(scope.risk.badge()),
            Root::World(World::CallerName) => text(scope.caller_name),
            Root::World(World::CallerKind) => text(scope.caller_kind),
            Root::World(World::CallerDoor) => text(scope.caller_door),
            Root::World(World::CallerLevel) => text(scope.caller_level),
            Root::World(World::CallerGroups) => Value::Words(scope.caller_groups),
            Root::World(World::ToolName) => text(scope.tool_name),
            Root::World(World::ToolCategory) => text(scope.tool_category),
            Root::World(World::ToolTags) => Value::Words(scope.tool_tags),
            Root::World(World::ToolActions) => Value::Made(
                scope
                    .tool_actions
                    .iter()
                    .map(|action| text(action.word()))
                    .collect(),
            ),
            Root::World(World::TimeMs) => Value::Int(scope.at_ms.into()),
            Root::World(World::TimeHour) => {
                Value::Int(minutes.div_euclid(60).rem_euclid(24).into())
            }
            Root::World(World::TimeMinute) => Value::Int(minutes.rem_euclid(60).into()),
            Root::World(World::TimeWeekday) => text(weekday(minutes.div_euclid(1_440))),
            Root::World(World::TimeDate) => {
                Value::Text(Cow::Owned(date(minutes.div_euclid(1_440))))
            }
        }
    }

    fn field(&mut self, of: &'a Expr, name: &'a str) -> Answer<'a> {
        match self.value(of)? {
            Value::Object(members) => match members.get(name) {
                Some(value) => Ok(Value::from_json(value)),
                None => undefined(format!("there is no `{}`", elided(name, 60))),
            },
            other => undefined(format!(
                "{} has no field `{}`",
                other.noun(),
                elided(name, 60)
            )),
        }
    }

    fn index(&mut self, of: &'a Expr, index: &'a Expr) -> Answer<'a> {
        let of = self.value(of)?;
        let index = self.value(index)?;
        match (&of, &index) {
            (Value::Object(members), Value::Text(name)) => {
                // Looking a name up compares it.
                self.spend_text(name, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
                match members.get(name.as_ref()) {
                    Some(value) => Ok(Value::from_json(value)),
                    None => undefined(format!("there is no `{}`", elided(name, 60))),
                }
            }
            (list, Value::Int(index)) if list.is_list() => {
                let found = usize::try_from(*index).ok();
                let found = found.and_then(|index| list.member(index));
                let weight = found.as_ref().map_or(0, Value::weight);
                self.spend(weight / limits::CONDITION_TEXT_BYTES_PER_STEP)?;
                found.map_or_else(|| undefined(format!("there is no member {index}")), Ok)
            }
            _ => undefined(format!("{} has no such members", of.noun())),
        }
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Result<bool, Unevaluable> {
        match comparison {
            Comparison::Equal => self.equal(left, right),
            Comparison::Unequal => Ok(!self.equal(left, right)?),
            Comparison::Less => self.compare_order(left, right, Ordering::is_lt),
            Comparison::AtMost => self.compare_order(left, right, Ordering::is_le),
            Comparison::More => self.compare_order(left, right, Ordering::is_gt),
            Comparison::AtLeast => self.compare_order(left, right, Ordering::is_ge),
            Comparison::In => self.within(left, right),
        }
    }

    fn compare_order(
        &mut self,
        left: &Value<'a>,
        right: &Value<'a>,
        test: fn(Ordering) -> bool,
    ) -> Result<bool, Unevaluable> {
        if let Value::Text(text) = left {
            self.spend_text(text, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
        }
        match order(left, right) {
            Some(order) => Ok(test(order)),
            None => unlike(left, right),
        }
    }

    /// Attack: a number sent as text is not unequal to the number, it is
    /// undecidable. Only null may be compared with everything.
    fn equal(&mut self, left: &Value<'a>, right: &Value<'a>) -> Result<bool, Unevaluable> {
        self.spend(1)?;
        match (left, right) {
            (Value::Null, Value::Null) => Ok(true),
            (Value::Null, _) | (_, Value::Null) => Ok(false),
            (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
            (Value::Object(left), Value::Object(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                // Each member is a step of its own, so a large object ends by the budget.
                for (name, value) in *left {
                    let Some(other) = right.get(name) else {
                        return Ok(false);
                    };
                    if !self.equal(&Value::from_json(value), &Value::from_json(other))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (left, right) if left.is_list() && right.is_list() => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.members().zip(right.members()) {
                    if !self.equal(&left, &right)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (left, right) => self.compare_order(left, right, Ordering::is_eq),
        }
    }

    fn within(&mut self, item: &Value<'a>, of: &Value<'a>) -> Result<bool, Unevaluable> {
        if let (Value::Text(name), Value::Object(members)) = (item, of) {
            self.spend_text(name, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
            return Ok(members.contains_key(name.as_ref()));
        }
        if !of.is_list() {
            return undefined(format!("`in` needs a list, not {}", of.noun()));
        }
        let mut spoiled = None;
        for member in of.members() {
            match self.equal(item, &member) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Unevaluable::TooCostly) => return Err(Unevaluable::TooCostly),
                Err(why) => spoiled = Some(why),
            }
        }
        spoiled.map_or(Ok(false), Err)
    }

    fn arithmetic(
        &mut self,
        operation: Operation,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Answer<'a> {
        match (left, right) {
            (Value::Int(left), Value::Int(right)) => whole(match operation {
                Operation::Add => left.checked_add(*right),
                Operation::Subtract => left.checked_sub(*right),
                Operation::Multiply => left.checked_mul(*right),
                Operation::Divide => left.checked_div(*right),
                Operation::Remainder => left.checked_rem(*right),
            }),
            (Value::Int(_) | Value::Double(_), Value::Int(_) | Value::Double(_)) => {
                let (left, right) = (double(left), double(right));
                finite(match operation {
                    Operation::Add => left + right,
                    Operation::Subtract => left - right,
                    Operation::Multiply => left * right,
                    Operation::Divide => left / right,
                    Operation::Remainder => left % right,
                })
            }
            (Value::Text(left), Value::Text(right)) if operation == Operation::Add => {
                self.spend_text(left, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
                self.spend_text(right, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
                Ok(Value::Text(Cow::Owned(format!("{left}{right}"))))
            }
            (left, right) => undefined(format!(
                "{} and {} cannot be combined by arithmetic",
                left.noun(),
                right.noun()
            )),
        }
    }

    fn function(&mut self, function: Function, of: Value<'a>) -> Answer<'a> {
        if let Value::Text(text) = &of {
            self.spend_text(text, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
        }
        if function == Function::JsonSize {
            let bytes = of.json_bytes();
            self.spend(bytes / limits::CONDITION_TEXT_BYTES_PER_STEP)?;
            return Ok(count(bytes));
        }
        let bad = |of: &Value<'_>, what: &str| {
            undefined(format!("{} cannot be read as {what}", of.noun()))
        };
        match (function, &of) {
            (Function::Size, Value::Text(text)) => Ok(count(text.chars().count())),
            (Function::Size, other) => match other.len() {
                Some(len) => Ok(count(len)),
                None => undefined(format!("{} has no size", other.noun())),
            },
            (Function::Int, Value::Int(_))
            | (Function::Double, Value::Double(_))
            | (Function::Text, Value::Text(_)) => Ok(of),
            (Function::Int, Value::Double(number)) if number.abs() < 9e18 => {
                #[expect(clippy::cast_possible_truncation, reason = "within ±9e18")]
                let number = number.trunc() as i128;
                Ok(Value::Int(number))
            }
            (Function::Int, Value::Text(text)) => match text.parse::<i64>() {
                Ok(number) => Ok(Value::Int(number.into())),
                Err(_) => bad(&of, "a whole number"),
            },
            (Function::Int, other) => bad(other, "a whole number"),
            (Function::Double, Value::Int(_)) => finite(double(&of)),
            (Function::Double, Value::Text(text)) => match text.parse::<f64>() {
                Ok(number) => finite(number),
                Err(_) => bad(&of, "a number"),
            },
            (Function::Double, other) => bad(other, "a number"),
            (Function::Text, Value::Int(number)) => Ok(made(number.to_string())),
            (Function::Text, Value::Double(number)) => Ok(made(number.to_string())),
            (Function::Text, Value::Bool(is)) => Ok(made(is.to_string())),
            (Function::Text, other) => bad(other, "text"),
            (Function::Lower, Value::Text(text)) => Ok(made(text.to_ascii_lowercase())),
            (Function::Lower, other) => bad(other, "text"),
            // Answered above, for every value.
            (Function::JsonSize, other) => bad(other, "JSON"),
        }
    }

    fn method(&mut self, method: Method, of: &Value<'a>, argument: &Value<'a>) -> Answer<'a> {
        let (Value::Text(text), Value::Text(part)) = (of, argument) else {
            return undefined(format!(
                "text is needed, not {} and {}",
                of.noun(),
                argument.noun()
            ));
        };
        self.spend_text(text, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
        self.spend_text(part, limits::CONDITION_TEXT_BYTES_PER_STEP)?;
        Ok(Value::Bool(match method {
            Method::StartsWith => text.starts_with(part.as_ref()),
            Method::EndsWith => text.ends_with(part.as_ref()),
            Method::Contains => text.contains(part.as_ref()),
        }))
    }

    fn each(
        &mut self,
        quantifier: Quantifier,
        of: &'a Expr,
        slot: usize,
        inner: &'a Expr,
    ) -> Answer<'a> {
        let of = self.value(of)?;
        if of.len().is_none() {
            return undefined(format!("{} has no members", of.noun()));
        }
        let (mut yes, mut no, mut spoiled) = (0_usize, 0_usize, None);
        for member in of.members() {
            // Also drops what quantifiers within bound for the member before.
            self.bound.truncate(slot);
            self.bound.push(member);
            match self.truth(inner) {
                Ok(true) => yes += 1,
                Ok(false) => no += 1,
                Err(Unevaluable::TooCostly) => return Err(Unevaluable::TooCostly),
                Err(why) => spoiled = spoiled.or(Some(why)),
            }
        }
        self.bound.truncate(slot);
        match (quantifier, spoiled) {
            (Quantifier::Every, _) if no > 0 => Ok(Value::Bool(false)),
            (Quantifier::Some, _) if yes > 0 => Ok(Value::Bool(true)),
            (_, Some(why)) => Err(why),
            (Quantifier::Every, None) => Ok(Value::Bool(true)),
            (Quantifier::Some, None) => Ok(Value::Bool(false)),
            (Quantifier::One, None) => Ok(Value::Bool(yes == 1)),
        }
    }
}

fn plain(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(is) => Value::Bool(*is),
        Literal::Int(number) => Value::Int((*number).into()),
        Literal::Double(number) => Value::Double(*number),
        Literal::Text(text) => Value::Text(Cow::Borrowed(text)),
    }
}

fn made<'a>(text: String) -> Value<'a> {
    Value::Text(Cow::Owned(text))
}

fn count<'a>(number: usize) -> Value<'a> {
    Value::Int(i128::try_from(number).unwrap_or(i128::MAX))
}

/// Whole numbers stay within 64 bits, as CEL's do.
fn whole<'a>(number: Option<i128>) -> Answer<'a> {
    match number.filter(|number| i64::try_from(*number).is_ok()) {
        Some(number) => Ok(Value::Int(number)),
        None => undefined("a division by zero, or a number too large"),
    }
}

/// NaN compares with nothing, so a rule would silently not apply.
fn finite<'a>(number: f64) -> Answer<'a> {
    if number.is_finite() {
        return Ok(Value::Double(number));
    }
    undefined("a result that is not a number")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "arithmetic of a whole number and a fraction rounds, as it must"
)]
fn double(value: &Value<'_>) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Null
        | Value::Bool(_)
        | Value::Text(_)
        | Value::List(_)
        | Value::Words(_)
        | Value::Made(_)
        | Value::Object(_) => f64::NAN,
    }
}

fn unlike<T>(left: &Value<'_>, right: &Value<'_>) -> Result<T, Unevaluable> {
    undefined(format!(
        "{} and {} cannot be compared",
        left.noun(),
        right.noun()
    ))
}

/// 1970 began on a Thursday.
fn weekday(days: i64) -> &'static str {
    match days.rem_euclid(7) {
        0 => "thursday",
        1 => "friday",
        2 => "saturday",
        3 => "sunday",
        4 => "monday",
        5 => "tuesday",
        _ => "wednesday",
    }
}

/// Days since 1970 as `2026-11-16`. Years are counted from March, so that the
/// day that is not always there comes last; the calendar repeats every 400 of them.
fn date(days: i64) -> String {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + era * 400 + later;
    format!("{year:04}-{month:02}-{day:02}")
}
