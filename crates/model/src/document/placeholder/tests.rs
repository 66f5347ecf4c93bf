//! The grammar of section 7.2, by example and by property.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(value: &str, expected_names: &[&str], expected_form: Form) {
    assert_eq!(
        names(value).collect::<Vec<_>>(),
        expected_names,
        "{value:?}"
    );
    assert_eq!(form(value), expected_form, "{value:?}");
}

#[test]
fn names_are_found() {
    check("${A}", &["A"], Form::Anchored);
    check("${_A9_}", &["_A9_"], Form::Anchored);
    check("Bearer ${TOKEN}", &["TOKEN"], Form::Embedded);
    check("${A}${B}", &["A", "B"], Form::Embedded);
    check("${A}:${A}", &["A", "A"], Form::Embedded);
    check("x${A}y${B}z", &["A", "B"], Form::Embedded);
    check("$${A}", &["A"], Form::Embedded);
    check("${${A}}", &["A"], Form::Embedded);
    check("${a${B}", &["B"], Form::Embedded);
}

#[test]
fn other_text_is_literal() {
    for value in [
        "", "plain", "${}", "${a}", "${A b}", "${9A}", "${A", "$A", "{A}", "${Ä}", "${A-B}",
    ] {
        check(value, &[], Form::Plain);
    }
}

#[test]
fn malformed_placeholders_are_reported() {
    assert_eq!(
        lookalikes("${api_key} ${Api-Key} ${OK} ${not this}"),
        ["api_key", "Api-Key"]
    );
}

#[test]
fn blank_is_missing() {
    let environment: Environment = [("A", "value"), ("B", "  "), ("C", "")]
        .into_iter()
        .collect();
    let resolved = resolve("<${A}>", &environment).expect("set");
    assert_eq!(
        (resolved.text.as_str(), resolved.secrets.as_slice()),
        ("<value>", &["value".to_owned()][..])
    );
    assert_eq!(
        resolve("${A}${B}${C}${D}", &environment),
        Err(vec!["B".into(), "C".into(), "D".into()])
    );
}

#[test]
fn a_value_is_not_resolved_twice() {
    let environment: Environment = [("A", "${B}"), ("B", "inner")].into_iter().collect();
    assert_eq!(resolve("${A}", &environment).expect("set").text, "${B}");
}

proptest! {
    /// Parts put back together are the value, whatever it holds.
    #[test]
    fn splitting_loses_no_text(value in "[${}A-Za-z0-9_ ]{0,40}") {
        let joined: String = parts(&value).iter().map(|part| match part {
            Part::Literal(text) => (*text).to_owned(),
            Part::Name(name) => format!("${{{name}}}"),
        }).collect();
        prop_assert_eq!(joined, value);
    }
}
