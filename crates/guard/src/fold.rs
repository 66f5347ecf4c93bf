//! Constant folding: the value of an expression, as far as it is known without running
//! it.
//!
//! For keys that are assembled to hide their spelling. It follows literals, templates,
//! concatenation, names that are set once, and the handful of methods such tricks use.
//! What it cannot follow is caught at run time by the key guard. Every question has a
//! budget, so many questions stay linear.

mod call;

use oxc_ast::ast::{
    ArrayExpressionElement, ArrowFunctionBody, BinaryOperator, Expression, FunctionBody,
    ObjectExpression, ObjectPropertyKind, PropertyKind, Statement, UnaryOperator,
};

use crate::names::Names;

/// Nodes looked at for one question.
const NODES_MAX: usize = 200;
/// Longer texts are not the keys that the rules guard.
const TEXT_BYTES_MAX: usize = 256;
/// Values one expression may have.
const CHOICES_MAX: usize = 8;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Constant>),
}

impl Constant {
    /// Its conversion to a string.
    pub(crate) fn text(&self) -> String {
        match self {
            Constant::Undefined => String::from("undefined"),
            Constant::Null => String::from("null"),
            Constant::Bool(value) => value.to_string(),
            Constant::Number(value) => value.to_string(),
            Constant::Text(text) => text.clone(),
            Constant::List(items) => join(items, ","),
        }
    }

    /// Whether it counts as true.
    pub(crate) fn is_truthy(&self) -> bool {
        match self {
            Constant::Undefined | Constant::Null => false,
            Constant::Bool(value) => *value,
            Constant::Number(value) => *value != 0.0 && !value.is_nan(),
            Constant::Text(text) => !text.is_empty(),
            Constant::List(_) => true,
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Constant::Number(value) => Some(*value),
            Constant::Bool(value) => Some(f64::from(u8::from(*value))),
            Constant::Null => Some(0.0),
            Constant::Undefined => Some(f64::NAN),
            Constant::Text(text) if text.trim().is_empty() => Some(0.0),
            Constant::Text(text) => text.trim().parse().ok(),
            Constant::List(_) => None,
        }
    }
}

fn join(items: &[Constant], separator: &str) -> String {
    let texts: Vec<String> = items
        .iter()
        .map(|item| match item {
            Constant::Undefined | Constant::Null => String::new(),
            other => other.text(),
        })
        .collect();
    texts.join(separator)
}

/// One question.
pub(crate) struct Fold<'n, 'a> {
    names: &'n Names<'a>,
    nodes_left: usize,
}

impl<'n, 'a> Fold<'n, 'a> {
    pub(crate) fn new(names: &'n Names<'a>) -> Fold<'n, 'a> {
        Fold {
            names,
            nodes_left: NODES_MAX,
        }
    }

    /// Every key the expression may spell.
    pub(crate) fn keys(&mut self, expression: &Expression<'a>) -> Vec<String> {
        let mut found = Vec::new();
        self.gather(expression, &mut found);
        found
    }

    fn gather(&mut self, expression: &Expression<'a>, found: &mut Vec<String>) {
        if found.len() >= CHOICES_MAX || self.nodes_left == 0 {
            return;
        }
        self.nodes_left -= 1;
        match expression {
            Expression::ConditionalExpression(choice) => {
                self.gather(&choice.consequent, found);
                self.gather(&choice.alternate, found);
            }
            Expression::LogicalExpression(choice) => {
                self.gather(&choice.left, found);
                self.gather(&choice.right, found);
            }
            Expression::SequenceExpression(sequence) => {
                if let Some(last) = sequence.expressions.last() {
                    self.gather(last, found);
                }
            }
            // Whatever the operator: the right side is at least one of the values.
            Expression::AssignmentExpression(assignment) => self.gather(&assignment.right, found),
            other => found.extend(self.constant(other).map(|constant| constant.text())),
        }
    }

    /// The value of the expression.
    pub(crate) fn constant(&mut self, expression: &Expression<'a>) -> Option<Constant> {
        // One budget for the whole question, so that names which lead to each
        // other cannot loop.
        self.nodes_left = self.nodes_left.checked_sub(1)?;
        let constant = match expression {
            Expression::StringLiteral(text) => Constant::Text(text.value.to_string()),
            Expression::NumericLiteral(number) => Constant::Number(number.value),
            Expression::BooleanLiteral(value) => Constant::Bool(value.value),
            Expression::NullLiteral(_) => Constant::Null,
            Expression::TemplateLiteral(template) => {
                let mut text = String::new();
                for (index, quasi) in template.quasis.iter().enumerate() {
                    text.push_str(quasi.value.cooked.as_ref()?);
                    if let Some(hole) = template.expressions.get(index) {
                        text.push_str(&self.constant(hole)?.text());
                    }
                }
                Constant::Text(text)
            }
            Expression::Identifier(identifier) => match self.names.binding(identifier) {
                // A name that is written again has no one value; the key guard
                // sees it at run time.
                Some(binding) if binding.writes == 0 => return self.constant(binding.init?),
                Some(_) => return None,
                None => match identifier.name.as_str() {
                    "undefined" => Constant::Undefined,
                    "NaN" => Constant::Number(f64::NAN),
                    "Infinity" => Constant::Number(f64::INFINITY),
                    _ => return None,
                },
            },
            Expression::UnaryExpression(unary) => {
                return self.unary(unary.operator, &unary.argument);
            }
            Expression::BinaryExpression(binary) => {
                let left = self.constant(&binary.left)?;
                let right = self.constant(&binary.right)?;
                return bounded(operate(binary.operator, &left, &right)?);
            }
            Expression::ConditionalExpression(choice) => {
                return match self.constant(&choice.test)?.is_truthy() {
                    true => self.constant(&choice.consequent),
                    false => self.constant(&choice.alternate),
                };
            }
            Expression::SequenceExpression(sequence) => {
                return self.constant(sequence.expressions.last()?);
            }
            Expression::AssignmentExpression(assignment) if assignment.operator.is_assign() => {
                return self.constant(&assignment.right);
            }
            Expression::ArrayExpression(array) => {
                let mut items = Vec::new();
                for element in &array.elements {
                    items.push(match element {
                        ArrayExpressionElement::SpreadElement(_) => return None,
                        ArrayExpressionElement::Elision(_) => Constant::Undefined,
                        other => self.constant(other.as_expression()?)?,
                    });
                }
                Constant::List(items)
            }
            Expression::ObjectExpression(object) => return self.fold_coercion(object),
            Expression::CallExpression(call) => return bounded(self.call(call)?),
            Expression::ComputedMemberExpression(member) => {
                let key = self.constant(&member.expression)?;
                return self.member(&member.object, &key.text());
            }
            Expression::StaticMemberExpression(member) => {
                return self.member(&member.object, member.property.name.as_str());
            }
            _ => return None,
        };
        bounded(constant)
    }

    fn unary(&mut self, operator: UnaryOperator, argument: &Expression<'a>) -> Option<Constant> {
        if operator == UnaryOperator::Void {
            return Some(Constant::Undefined);
        }
        if operator == UnaryOperator::LogicalNot
            && matches!(
                argument,
                Expression::ArrayExpression(_) | Expression::ObjectExpression(_)
            )
        {
            return Some(Constant::Bool(false));
        }
        let value = self.constant(argument)?;
        match operator {
            UnaryOperator::LogicalNot => Some(Constant::Bool(!value.is_truthy())),
            UnaryOperator::UnaryNegation => Some(Constant::Number(-value.number()?)),
            UnaryOperator::UnaryPlus => Some(Constant::Number(value.number()?)),
            _ => None,
        }
    }

    /// A property of something known: `"abc"[1]`, `["a", "b"][0]`, `{ k: "x" }.k`.
    fn member(&mut self, object: &Expression<'a>, key: &str) -> Option<Constant> {
        let object = self.behind(object);
        if let Expression::ObjectExpression(literal) = object {
            let value = property(literal, key)?;
            return self.constant(value);
        }
        match self.constant(object)? {
            Constant::List(items) => match key {
                "length" => Some(Constant::Number(f64::from(
                    u32::try_from(items.len()).ok()?,
                ))),
                _ => items.get(key.parse::<usize>().ok()?).cloned(),
            },
            Constant::Text(text) => match key {
                "length" => Some(Constant::Number(f64::from(u32::try_from(text.len()).ok()?))),
                _ => {
                    let character = text.chars().nth(key.parse::<usize>().ok()?)?;
                    Some(Constant::Text(character.to_string()))
                }
            },
            _ => None,
        }
    }

    /// The expression behind a name that is set once.
    fn behind<'e>(&self, expression: &'e Expression<'a>) -> &'e Expression<'a>
    where
        'a: 'e,
    {
        match expression {
            Expression::Identifier(identifier) => match self.names.binding(identifier) {
                Some(binding) if binding.writes == 0 => binding.init.unwrap_or(expression),
                _ => expression,
            },
            _ => expression,
        }
    }

    /// An object whose `toString` or `valueOf` gives something known.
    fn fold_coercion(&mut self, object: &ObjectExpression<'a>) -> Option<Constant> {
        let value = property(object, "toString").or_else(|| property(object, "valueOf"))?;
        let returned = match value {
            Expression::ArrowFunctionExpression(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => returned(body)?,
                other => other.as_expression()?,
            },
            Expression::FunctionExpression(function) => returned(function.body.as_ref()?)?,
            _ => return None,
        };
        // A getter gives the function that gives the text.
        if let Expression::ArrowFunctionExpression(arrow) = returned {
            let inner = match &arrow.body {
                ArrowFunctionBody::FunctionBody(_) => return None,
                other => other.as_expression()?,
            };
            return self.constant(inner);
        }
        self.constant(returned)
    }
}

/// The value of a key. Of several with one name the last counts, as in JavaScript.
fn property<'e, 'a>(object: &'e ObjectExpression<'a>, key: &str) -> Option<&'e Expression<'a>> {
    object
        .properties
        .iter()
        .rev()
        .find_map(|property| match property {
            // A setter gives no value.
            ObjectPropertyKind::ObjectProperty(property)
                if property.key.is_specific_static_name(key)
                    && property.kind != PropertyKind::Set =>
            {
                Some(&property.value)
            }
            _ => None,
        })
}

fn returned<'e, 'a>(body: &'e FunctionBody<'a>) -> Option<&'e Expression<'a>> {
    body.statements
        .iter()
        .find_map(|statement| match statement {
            Statement::ReturnStatement(statement) => statement.argument.as_ref(),
            _ => None,
        })
}

fn bounded(constant: Constant) -> Option<Constant> {
    match &constant {
        Constant::Text(text) if text.len() > TEXT_BYTES_MAX => None,
        Constant::List(items) if items.len() > TEXT_BYTES_MAX => None,
        _ => Some(constant),
    }
}

fn operate(operator: BinaryOperator, left: &Constant, right: &Constant) -> Option<Constant> {
    let is_text = |side: &Constant| matches!(side, Constant::Text(_) | Constant::List(_));
    if operator == BinaryOperator::Addition && (is_text(left) || is_text(right)) {
        let mut text = left.text();
        text.push_str(&right.text());
        return Some(Constant::Text(text));
    }
    let (first, second) = (left.number()?, right.number()?);
    Some(match operator {
        BinaryOperator::Addition => Constant::Number(first + second),
        BinaryOperator::Subtraction => Constant::Number(first - second),
        BinaryOperator::Multiplication => Constant::Number(first * second),
        BinaryOperator::Division => Constant::Number(first / second),
        BinaryOperator::Remainder => Constant::Number(first % second),
        BinaryOperator::Exponential => Constant::Number(first.powf(second)),
        BinaryOperator::LessThan => Constant::Bool(first < second),
        BinaryOperator::LessEqualThan => Constant::Bool(first <= second),
        BinaryOperator::GreaterThan => Constant::Bool(first > second),
        BinaryOperator::GreaterEqualThan => Constant::Bool(first >= second),
        BinaryOperator::StrictEquality if left == right => Constant::Bool(true),
        BinaryOperator::Equality if left == right => Constant::Bool(true),
        _ => return None,
    })
}
