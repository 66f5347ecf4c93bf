//! Keys that lead to prototypes and constructors, plain or assembled.

use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, ComputedMemberExpression, Expression, ObjectProperty,
    PropertyKey, StaticMemberExpression,
};
use oxc_span::{GetSpan as _, Span};

use super::Rules;
use super::identifier::is_reserved;
use crate::code::IssueCode;
use crate::preset::{is_dangerous_key, is_meta_method};

impl<'a> Rules<'_, 'a> {
    pub(super) fn static_member(&mut self, member: &StaticMemberExpression<'a>) {
        if !self.preset.is_agent_script {
            self.refused_member(member.property.name.as_str(), member.property.span);
            return;
        }
        if self.is_global_object(&member.object) {
            self.error(IssueCode::NoGlobalAccess, member.span, || {
                String::from(
                    "the global object is not available; use the names the script is given",
                )
            });
        }
        let name = member.property.name.as_str();
        // With `Object.create` an object gets any prototype, also that of a function.
        if name == "create" && self.is_global_named(&member.object, "Object") {
            self.error(IssueCode::NoMetaProgramming, member.property.span, || {
                String::from("`Object.create` is not available; write `{ … }`")
            });
        }
        self.key(name, member.property.span, false);
    }

    pub(super) fn computed_member(&mut self, member: &ComputedMemberExpression<'a>) {
        let is_literal = matches!(&member.expression, Expression::StringLiteral(_))
            || matches!(&member.expression, Expression::TemplateLiteral(text) if text.expressions.is_empty());
        // A number is the most common key by far and never one of these.
        if matches!(&member.expression, Expression::NumericLiteral(_)) {
            return;
        }
        let span = member.expression.span();
        let keys = self.fold().keys(&member.expression);
        if !self.preset.is_agent_script {
            for key in keys {
                self.refused_member(&key, span);
            }
            return;
        }
        if self.is_global_object(&member.object) {
            self.error(IssueCode::NoGlobalAccess, member.span, || {
                String::from(
                    "the global object is not available; use the names the script is given",
                )
            });
        }
        let is_object = self.is_global_named(&member.object, "Object");
        for key in keys {
            if key == "create" && is_object {
                self.error(IssueCode::NoMetaProgramming, span, || {
                    String::from("`Object.create` is not available; write `{ … }`")
                });
            }
            // A literal is plain to see; a key that is put together to read so
            // is not an accident.
            self.key(&key, span, !is_literal);
        }
    }

    /// Presets for general JavaScript refuse a name as a key only if it leads to code.
    fn refused_member(&mut self, key: &str, span: Span) {
        if is_dangerous_key(key) && self.refused.contains(key) {
            let code = if key == "constructor" {
                IssueCode::NoConstructorAccess
            } else {
                IssueCode::DisallowedIdentifier
            };
            self.error(code, span, || format!("`{key}` is not available as a key"));
        }
    }

    fn key(&mut self, key: &str, span: Span, is_built: bool) {
        if is_meta_method(key) {
            self.error(IssueCode::NoMetaProgramming, span, || {
                format!("`{key}` changes how objects work; use plain properties")
            });
            return;
        }
        if !is_dangerous_key(key) {
            return;
        }
        let code = match (key, is_built) {
            ("constructor" | "prototype", true) => IssueCode::ConstructorAccess,
            ("constructor", false) => IssueCode::NoConstructorAccess,
            _ => IssueCode::DisallowedIdentifier,
        };
        let how = if is_built {
            "this key evaluates to"
        } else {
            "the key"
        };
        let hint = match key {
            "constructor" | "prototype" | "__proto__" => "; for plain data use another key",
            _ => "",
        };
        self.error(code, span, || {
            format!("{how} `{key}`, which leads out of plain data{hint}")
        });
    }

    pub(super) fn object_property(&mut self, property: &ObjectProperty<'a>) {
        if !self.preset.is_agent_script {
            return;
        }
        if property.computed {
            if let Some(key) = property.key.as_expression() {
                for key in self.fold().keys(key) {
                    if key == "__proto__" {
                        self.key(&key, property.key.span(), true);
                    }
                }
            }
            return;
        }
        let Some(key) = property.key.static_name() else {
            return;
        };
        if key == "__proto__" && !property.shorthand {
            self.error(IssueCode::DisallowedIdentifier, property.key.span(), || {
                String::from("`__proto__` sets the prototype; copy properties with `{ ...other }`")
            });
        }
        if is_reserved(&key) && !property.shorthand {
            self.error(
                IssueCode::ReservedPrefixMemberAssignment,
                property.key.span(),
                || format!("`{key}` starts like the names of the runtime; use another key"),
            );
        }
    }

    pub(super) fn check_destructuring(
        &mut self,
        key: &PropertyKey<'a>,
        is_computed: bool,
        span: Span,
    ) {
        if !self.preset.is_agent_script {
            return;
        }
        if is_computed {
            self.error(IssueCode::NoComputedDestructuring, span, || {
                String::from("a computed key in a pattern; read the property in a line of its own")
            });
            if let Some(key) = key.as_expression() {
                for key in self.fold().keys(key) {
                    self.destructured_name(&key, span);
                }
            }
            return;
        }
        if let Some(name) = key.static_name() {
            self.destructured_name(&name, span);
        }
    }

    pub(super) fn destructured_name(&mut self, name: &str, span: Span) {
        if !self.preset.is_agent_script {
            return;
        }
        if is_dangerous_key(name) || is_meta_method(name) {
            self.error(IssueCode::NoDangerousDestructuring, span, || {
                format!("`{name}` leads out of plain data and cannot be taken out of an object")
            });
        }
    }

    pub(super) fn assignment(&mut self, assignment: &AssignmentExpression<'a>) {
        if !self.preset.is_agent_script {
            return;
        }
        let (key, span) = match &assignment.left {
            AssignmentTarget::StaticMemberExpression(member) => {
                (Some(member.property.name.to_string()), member.property.span)
            }
            AssignmentTarget::ComputedMemberExpression(member) => {
                let key = self
                    .fold()
                    .constant(&member.expression)
                    .map(|key| key.text());
                (key, member.expression.span())
            }
            AssignmentTarget::ObjectAssignmentTarget(target) => {
                if self.is_global_object(&assignment.right) {
                    self.error(IssueCode::NoGlobalDestructure, target.span, || {
                        String::from("the global object cannot be destructured; use the names the script is given")
                    });
                }
                return;
            }
            _ => return,
        };
        match key.as_deref() {
            Some(key) if is_reserved(key) => {
                self.error(IssueCode::ReservedPrefixMemberAssignment, span, || {
                    format!("`{key}` starts like the names of the runtime; use another key")
                })
            }
            Some("length") => {
                self.large(&assignment.right, super::call::ARRAY_ITEMS_MAX, "`length`")
            }
            _ => {}
        }
    }
}
