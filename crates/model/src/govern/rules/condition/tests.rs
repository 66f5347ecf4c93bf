//! Conditions, by example.

use serde_json::json;

use super::*;

/// Ann, through MCP, with level standard and group devs, calls `pay.transfer` of
/// category DATA at 2026-11-16 (a Monday) 03:20 UTC, rated L3.
#[track_caller]
fn holds(text: &str, args: &Json) -> Result<bool, String> {
    let condition = Condition::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    let action = Action::built_in("code:read").expect("an action");
    let scope = ConditionScope {
        args: args.as_object().expect("an object"),
        caller_name: "Ann",
        caller_kind: "named",
        caller_door: "mcp",
        caller_groups: &["devs".to_owned()],
        caller_level: "standard",
        tool_name: "pay.transfer",
        tool_category: "DATA",
        tool_tags: &["money".to_owned()],
        tool_actions: &[action],
        risk: Level::L3,
        at_ms: 1_794_799_200_000,
    };
    condition.holds(&scope).map_err(|why| why.to_string())
}

#[track_caller]
fn yes(text: &str, args: &Json) {
    assert_eq!(holds(text, args), Ok(true), "{text}");
    let not = format!("!({text})");
    assert_eq!(holds(&not, args), Ok(false), "{not}");
}

#[track_caller]
fn cannot(text: &str, args: &Json, why: &str) {
    assert_eq!(holds(text, args), Err(why.to_owned()), "{text}");
}

#[test]
fn every_field_of_the_scope_is_readable() {
    for text in [
        "caller.name == 'Ann'",
        "caller.kind == 'named' && caller.door == 'mcp'",
        "'devs' in caller.groups",
        "caller.level in ['standard', 'elevated']",
        "tool.name.startsWith('pay.')",
        "tool.category == 'DATA' && 'money' in tool.tags",
        "'code:read' in tool.actions",
        "risk >= 'L3' && risk < 'L4'",
        "time.hour == 3 && time.minute == 20",
        "time.weekday == 'monday' && time.date == '2026-11-16'",
        "time.ms == 1794799200000",
        "!(time.weekday in ['saturday', 'sunday'])",
    ] {
        yes(text, &json!({}));
    }
}

#[test]
fn numbers_are_exact() {
    let args = json!({
        "sum": 1001, "half": 0.5, "big": 18_446_744_073_709_551_615_u64, "huge": 1e30,
        "edge": 9_007_199_254_740_993_i64,
    });
    for text in [
        "args.sum > 1000",
        "args.sum > 1000.5",
        "args.half < 1",
        "args.sum * 2 == 2002 && args.sum / 2 == 500 && args.sum % 2 == 1",
        "-args.sum < 0",
        "args.big > 9223372036854775807",
        "args.huge > args.big",
        "args.edge > 9007199254740992.0",
        "args.edge != 9007199254740992.0",
        "1 == 1.0",
        "2 + 3 * 4 == 14 && (2 + 3) * 4 == 20",
        "1e3 == 1000",
    ] {
        yes(text, &args);
    }
}

/// What no answer is right for, and what is said instead.
const UNDECIDED: &[(&str, &str)] = &[
    ("args.text > 1000", "text and a number cannot be compared"),
    ("args.text == 2000", "text and a number cannot be compared"),
    ("args.text != 2000", "text and a number cannot be compared"),
    ("args.missing > 1", "there is no `missing`"),
    ("args.missing == null", "there is no `missing`"),
    ("args.none > 1", "null and a number cannot be compared"),
    ("args.object.a > 1", "null and a number cannot be compared"),
    ("args.n.x == 1", "a number has no field `x`"),
    ("args.n && true", "it is a number, not true or false"),
    ("args.text", "it is text, not true or false"),
    (
        "args.n / args.zero > 1",
        "a division by zero, or a number too large",
    ),
    (
        "args.max + 1 > 0",
        "a division by zero, or a number too large",
    ),
    ("args.f / args.f > 1", "a result that is not a number"),
    ("args.f / args.f != 1", "a result that is not a number"),
    ("double(args.nan) > 1", "a result that is not a number"),
    ("double('inf') > 1", "a result that is not a number"),
    (
        "int(args.object) > 1",
        "an object cannot be read as a whole number",
    ),
    ("int('0x10') > 1", "text cannot be read as a whole number"),
    ("args.list[5] == 1", "there is no member 5"),
    ("args.list[-1] == 1", "there is no member -1"),
    ("3 in args.list", "a number and text cannot be compared"),
    ("args.n in args.n", "`in` needs a list, not a number"),
    (
        "args.list.all(x, x > 0)",
        "text and a number cannot be compared",
    ),
    ("args.n.all(x, x > 0)", "a number has no members"),
    (
        "args.n.contains('a')",
        "text is needed, not a number and text",
    ),
    ("args.n.matches('a')", "`matches` needs text, not a number"),
    (
        "args.text + 1 == 2",
        "text and a number cannot be combined by arithmetic",
    ),
    ("-args.text == 1", "text has no negative"),
];

#[test]
fn unevaluable_conditions_are_not_guessed() {
    let args = json!({
        "text": "2000", "none": null, "list": [1, "a"], "object": {"a": null}, "n": 5, "zero": 0,
        "max": i64::MAX, "nan": "NaN", "f": 0.0,
    });
    for (text, why) in UNDECIDED {
        cannot(text, &args, why);
    }
}

#[test]
fn one_part_that_decides_is_enough() {
    let args = json!({ "list": [1, "a"], "none": null });
    yes("args.missing > 1 || true", &args);
    yes("true || args.missing > 1", &args);
    yes("!(args.missing > 1 && false)", &args);
    yes("has(args.list) && !has(args.missing)", &args);
    yes("has(args.none) && args.none == null", &args);
    yes("args.list.exists(x, x == 1)", &args);
    yes("1 in args.list", &args);
    yes("'list' in args", &args);
    yes("has(args.missing) ? args.missing > 1 : true", &args);
}

#[test]
fn texts_and_lists() {
    let args = json!({ "to": "ops@EXAMPLE.com", "ids": [1, 2, 3], "deep": {"a": [{"b": "x"}]} });
    for text in [
        "args.to.lowerAscii().endsWith('@example.com')",
        "args.to.contains(\"EXAMPLE\") && args.to.matches(r'^\\w+@\\w+\\.com$')",
        "size(args.to) == 15 && args.ids.size() == 3",
        "args.ids.all(id, id < 4) && args.ids.exists(id, id == 2) && args.ids.exists_one(id, id > 2)",
        "args.deep.a[0].b == 'x' && args.deep['a'][0]['b'] == 'x'",
        "args.ids == [1, 2, 3] && args.ids != [1, 2]",
        "args.ids.all(a, args.ids.exists(b, a == b))",
        "string(args.ids[0]) + '!' == '1!'",
        "int('7') == 7 && double('1.5') == 1.5 && int(2.9) == 2",
        "'it\\'s \\u00e9\\n' == \"it's é\\n\"",
    ] {
        yes(text, &args);
    }
}

#[test]
fn a_caller_cannot_make_a_condition_run_long() {
    let args = json!({ "list": vec![1; 10_000], "text": "a".repeat(1 << 20) });
    let costly = "it takes more than 10000 steps";
    cannot("args.list.all(a, args.list.all(b, a == b))", &args, costly);
    cannot("args.list.all(a, a == 1)", &args, costly);
    cannot("args.list == args.list || true", &args, costly);
    cannot("!args.text.matches('(a|aa)+$') || true", &args, costly);
    yes("!args.text.contains('b')", &args);
    cannot(
        "[args.text + args.text].all(x, x + x + x + x != x)",
        &args,
        costly,
    );
    // Neither a long name nor a long part is free.
    let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    cannot(
        &format!("{ten}.all(x, !(args.text in args))"),
        &args,
        costly,
    );
    cannot(
        &format!("{ten}.all(x, args[args.text] == 1) || true"),
        &args,
        costly,
    );
    cannot(
        &format!("{ten}.all(x, !'a'.contains(args.text))"),
        &args,
        costly,
    );
    let many = ["args.text.contains('b')"; 10].join(" || ");
    cannot(&many, &args, costly);
}

/// Slips, with where they are, what is said, and what to write instead.
const SLIPS: &[(&str, usize, &str, Option<&str>)] = &[
    (
        "arg.amount > 1",
        0,
        "there is no name `arg`",
        Some("did you mean `args`?"),
    ),
    (
        "caller.nam == 'a'",
        7,
        "there is no field of `caller` `nam`",
        Some("did you mean `name`?"),
    ),
    (
        "args.a.startWith('x')",
        7,
        "there is no function `startWith`",
        Some("did you mean `startsWith`?"),
    ),
    (
        "args.a = 1",
        7,
        "`=` has no meaning in a condition",
        Some("write `==`"),
    ),
    (
        "args.a > 1 and args.b > 1",
        11,
        "`and` is not expected here",
        Some("write `&&`"),
    ),
    (
        "1 < args.a < 5",
        11,
        "`<` is not expected here",
        Some("put brackets around one of the two comparisons"),
    ),
    (
        "parameters.amount > 1",
        0,
        "there is no name `parameters`",
        Some("there are `args`, `caller`, `tool`, `risk`, `time`"),
    ),
    ("args.a + ", 9, "expected a value, found the end", None),
    ("(args.a", 7, "expected `)`, found the end", None),
    ("'abc", 0, "a string without its closing quote", None),
    (
        "args.a > 99999999999999999999",
        9,
        "`99999999999999999999` is too large",
        None,
    ),
    ("5", 0, "the condition is a number, not true or false", None),
    (
        "caller == 'a'",
        7,
        "`caller` needs one of its fields: name, kind, door, groups, level",
        None,
    ),
    (
        "args.a.matches(args.b)",
        15,
        "`matches` needs its pattern as a text in quotes",
        None,
    ),
    (
        "args.a.matches('(')",
        15,
        "`(` is no pattern",
        Some("write a backslash in `r'…'`, so that it stays one"),
    ),
    (
        "has(args)",
        4,
        "`has` needs a field, such as `has(args.amount)`",
        None,
    ),
    (
        "args.a.all(args, true)",
        11,
        "`args` already has a meaning",
        Some("use another name"),
    ),
    ("", 0, "expected a value, found the end", None),
];

#[test]
fn errors_have_a_place_and_the_nearest_name() {
    for (text, at, message, fix) in SLIPS {
        let fault = Condition::parse(text).expect_err(text);
        let seen = (fault.at, fault.message.as_str(), fault.fix.as_deref());
        assert_eq!(seen, (*at, *message, *fix), "{text}");
    }
    let refused = |text: &str| Condition::parse(text).expect_err(text).to_string();
    assert!(refused(&"(".repeat(40)).contains("more than 32 deep"));
    assert!(refused(&"!".repeat(40)).contains("more than 32 deep"));
    assert!(refused(&"a".repeat(5_000)).contains("longer than"));
    assert!(refused(&"! ".repeat(600)).contains("words and marks"));
    assert!(refused(&format!("{}1 > 0", "1 + ".repeat(40))).contains("in a row"));
    assert!(refused(&format!("args{} > 0", ".a".repeat(40))).contains("in a row"));
    assert!(refused(r"args.a.matches('\\w{1000}{1000}')").contains("too large"));
}

#[test]
fn constants_are_known_when_read() {
    let constant = |text| Condition::parse(text).expect(text).constant();
    assert_eq!(constant("1 > 2"), Some(false));
    assert_eq!(constant("true"), Some(true));
    assert_eq!(constant("args.a > 2"), None);
    assert_eq!(constant("1 / 0 == 1"), None);
    let condition = Condition::parse("args.b > args.a && has(args.b)").expect("a condition");
    assert_eq!(condition.arguments(), ["a", "b"]);
}

/// The length of arguments has a form of its own, and the two that look like it and
/// are not are found: one when the rule is read, one by lint.
#[test]
fn how_long_arguments_are() {
    let args = json!({"text": "grüße\n", "list": [1, 2.5, null, true], "o": {"a": "b"}});
    let bytes = args.to_string().len();
    yes(&format!("jsonSize(args) == {bytes}"), &args);
    yes("jsonSize(args.text) == 11 && size(args.text) == 6", &args);
    yes(
        "jsonSize(args.list) == 17 && jsonSize(args.list[0]) == 1",
        &args,
    );
    yes("jsonSize(args.o) == 9 && args.o.jsonSize() == 9", &args);
    yes(
        "jsonSize([args.text, 'a']) == 17 && jsonSize([]) == 2",
        &args,
    );
    yes("jsonSize(tool.tags) == 9 && jsonSize(null) == 4", &args);
    yes(
        "jsonSize(args.list[1]) == 3 && jsonSize(1 == 1) == 4",
        &args,
    );
    let refused = |text: &str| {
        let fault = Condition::parse(text).expect_err(text);
        (fault.at, fault.message, fault.fix)
    };
    let fix = Some("for the length of the arguments, write `jsonSize(args)`".to_owned());
    assert_eq!(
        refused("size(string(args)) > 2000"),
        (5, "`string` does not accept an object".to_owned(), fix)
    );
    for (text, message) in [
        ("int(args) > 1", "`int` does not accept an object"),
        ("size(1) > 1", "`size` does not accept a number"),
        (
            "lowerAscii([1]) == 'a'",
            "`lowerAscii` does not accept a list",
        ),
        ("double(null) > 1", "`double` does not accept null"),
    ] {
        assert_eq!(refused(text).1, message, "{text}");
    }
    let long = json!({"text": "x".repeat(4 << 20)});
    cannot(
        "jsonSize(args) > 1",
        &long,
        "it takes more than 10000 steps",
    );
}
