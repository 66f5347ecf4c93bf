//! The calls that put texts together.

use oxc_ast::ast::{CallExpression, Expression};

use super::{Constant, Fold, join};

impl<'a> Fold<'_, 'a> {
    pub(super) fn call(&mut self, call: &CallExpression<'a>) -> Option<Constant> {
        let mut arguments = Vec::new();
        for argument in &call.arguments {
            arguments.push(self.constant(argument.as_expression()?)?);
        }
        match &call.callee {
            Expression::Identifier(identifier) if self.names.is_global(identifier) => {
                global(identifier.name.as_str(), &arguments)
            }
            Expression::StaticMemberExpression(member) => {
                let method = member.property.name.as_str();
                if let Expression::Identifier(object) = &member.object
                    && self.names.is_global(object)
                {
                    return of_global(object.name.as_str(), method, &arguments);
                }
                let receiver = self.constant(&member.object)?;
                self.method(&receiver, method, &arguments)
            }
            Expression::ComputedMemberExpression(member) => {
                let method = self.constant(&member.expression)?.text();
                let receiver = self.constant(&member.object)?;
                self.method(&receiver, &method, &arguments)
            }
            _ => None,
        }
    }

    fn method(
        &mut self,
        receiver: &Constant,
        method: &str,
        arguments: &[Constant],
    ) -> Option<Constant> {
        let first = arguments.first();
        match (receiver, method) {
            (_, "toString" | "valueOf") => Some(Constant::Text(receiver.text())),
            (Constant::List(items), "join") => {
                let separator = first.map_or_else(|| String::from(","), Constant::text);
                Some(Constant::Text(join(items, &separator)))
            }
            (Constant::List(items), "reverse" | "toReversed") => {
                Some(Constant::List(items.iter().rev().cloned().collect()))
            }
            (Constant::List(items), "concat") => {
                let mut items = items.clone();
                for argument in arguments {
                    match argument {
                        Constant::List(more) => items.extend(more.iter().cloned()),
                        other => items.push(other.clone()),
                    }
                }
                Some(Constant::List(items))
            }
            (Constant::List(items), "at") => items.get(index(first)?).cloned(),
            (Constant::List(items), "pop") => items.last().cloned(),
            (Constant::List(items), "shift") => items.first().cloned(),
            (Constant::Text(text), method) => of_text(text, method, arguments),
            _ => None,
        }
    }
}

fn of_text(text: &str, method: &str, arguments: &[Constant]) -> Option<Constant> {
    let first = arguments.first();
    let changed = match method {
        "concat" => {
            let mut text = String::from(text);
            for argument in arguments {
                text.push_str(&argument.text());
            }
            text
        }
        "toLowerCase" | "toLocaleLowerCase" => text.to_lowercase(),
        "toUpperCase" | "toLocaleUpperCase" => text.to_uppercase(),
        "trim" => String::from(text.trim()),
        "trimStart" => String::from(text.trim_start()),
        "trimEnd" => String::from(text.trim_end()),
        "normalize" => String::from(text),
        "charAt" | "at" => text.chars().nth(index(first)?)?.to_string(),
        "slice" | "substring" => {
            let start = first.map_or(Some(0), |_| index(first))?;
            let end = match arguments.get(1) {
                Some(_) => index(arguments.get(1))?,
                None => text.chars().count(),
            };
            text.chars()
                .skip(start)
                .take(end.saturating_sub(start))
                .collect()
        }
        "substr" => {
            let count = match arguments.get(1) {
                Some(_) => index(arguments.get(1))?,
                None => text.chars().count(),
            };
            text.chars().skip(index(first)?).take(count).collect()
        }
        "repeat" => {
            let count = index(first)?;
            // Before it is made: a constant may ask for gigabytes.
            if count.saturating_mul(text.len()) > super::TEXT_BYTES_MAX {
                return None;
            }
            text.repeat(count)
        }
        "replace" => text.replacen(&first?.text(), &arguments.get(1)?.text(), 1),
        "replaceAll" => text.replace(&first?.text(), &arguments.get(1)?.text()),
        "split" => {
            let separator = first?.text();
            let pieces: Vec<Constant> = match separator.is_empty() {
                true => text
                    .chars()
                    .map(|character| Constant::Text(character.to_string()))
                    .collect(),
                false => text
                    .split(&separator)
                    .map(|piece| Constant::Text(String::from(piece)))
                    .collect(),
            };
            return Some(Constant::List(pieces));
        }
        _ => return None,
    };
    Some(Constant::Text(changed))
}

fn global(name: &str, arguments: &[Constant]) -> Option<Constant> {
    let first = arguments.first();
    match name {
        "String" => Some(Constant::Text(
            first.map_or_else(String::new, Constant::text),
        )),
        "Number" => Some(Constant::Number(first.map_or(Some(0.0), Constant::number)?)),
        "Boolean" => Some(Constant::Bool(first.is_some_and(Constant::is_truthy))),
        "decodeURIComponent" | "decodeURI" | "unescape" => {
            percent_decoded(&first?.text()).map(Constant::Text)
        }
        _ => None,
    }
}

fn of_global(object: &str, method: &str, arguments: &[Constant]) -> Option<Constant> {
    match (object, method) {
        ("String", "fromCharCode" | "fromCodePoint") => {
            let mut text = String::new();
            for argument in arguments {
                // Half of a surrogate pair is no character of Rust's; such a key
                // is left to run time.
                text.push(char::from_u32(code(argument.number()?)?)?);
            }
            Some(Constant::Text(text))
        }
        ("JSON", "parse") => {
            let text = arguments.first()?.text();
            let inner = text.trim().strip_prefix('"')?.strip_suffix('"')?;
            (!inner.contains('\\')).then(|| Constant::Text(String::from(inner)))
        }
        ("Array", "of") => Some(Constant::List(arguments.to_vec())),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// A whole number of characters, none if the argument is missing.
fn index(argument: Option<&Constant>) -> Option<usize> {
    match argument {
        None => Some(0),
        Some(constant) => usize::try_from(code(constant.number()?)?).ok(),
    }
}

/// A small whole number without a sign.
fn code(number: f64) -> Option<u32> {
    // The text of a whole number is its digits; a cast would cut silently.
    format!("{}", number.trunc()).parse().ok()
}
