//! The pass over the raw text: what it refuses, and how little it reads to do so.

use super::*;
use crate::preset::PresetLevel as Trust;

fn look(text: &str, preset: &Preset) -> (Vec<&'static str>, Scan) {
    let mut marks = Marks::default();
    let scan = scan(text, preset, &mut marks);
    let report = marks.report(text);
    let codes = report
        .issues
        .iter()
        .filter(|issue| issue.severity == crate::Severity::Error);
    (codes.map(|issue| issue.code.word()).collect(), scan)
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let (codes, _) = look(text, &Preset::agent_script(Trust::Secure));
    assert_eq!(
        codes,
        expected,
        "{}",
        text.chars().take(80).collect::<String>()
    );
}

#[track_caller]
fn check_standard(text: &str, expected: &[&str]) {
    let (codes, _) = look(text, &Preset::agent_script(Trust::Standard));
    assert_eq!(
        codes,
        expected,
        "{}",
        text.chars().take(80).collect::<String>()
    );
}

#[test]
fn text_in_any_language_is_fine_where_text_belongs() {
    check(
        "const a = 'привет, мир'; // комментарий с буквой а и о\nreturn a;",
        &[],
    );
    check(
        "const a = '日本語' + \"Ελλάδα\" + `עברית ${1}`; return a;",
        &[],
    );
    check("return '👩‍💻 🏴󠁧󠁢󠁥󠁮󠁧󠁿';", &[]);
    check("/* ==== ---- //// (((((( */ return 1; // ======", &[]);
    check("const имя = 1; const größe = 2; return имя + größe;", &[]);
    check("\u{feff}return 1;", &[]);
}

#[test]
fn hidden_characters_are_seen() {
    check("return 'a\u{202e}b';", &["PRESCANNER_BIDI_ATTACK"]);
    check("// a\u{200f}b\nreturn 1", &["PRESCANNER_BIDI_ATTACK"]);
    check("const еval = 1;", &["PRESCANNER_HOMOGRAPH"]);
    check("const a\u{200b} = 1;", &["PRESCANNER_UNICODE_SUSPICIOUS"]);
    check("return 'a\u{200b}\u{200b}\u{200b}b';", &[]);
    check(
        "return 'a\u{200b}\u{200b}\u{200b}\u{200b}b';",
        &["PRESCANNER_UNICODE_SUSPICIOUS"],
    );
    check("return 'a\0b';", &["PRESCANNER_NULL_BYTE"]);
}

#[test]
fn slashes_are_told_apart() {
    check("return 4 / 2 / 1;", &[]);
    check("return (4) / 2 / 1;", &[]);
    check("const a = [4]; return a[0] / 2 / 1;", &[]);
    check("let i = 4; return i++ / 2 / 1;", &[]);
    check("return /a/;", &["PRESCANNER_REGEX_BLOCKED"]);
    check("if (a) /b/.test(c);", &["PRESCANNER_REGEX_BLOCKED"]);
    check("const a = b\n/ 2 / 1;", &[]);
    check("x = {} / 1 / 2;", &["PRESCANNER_AMBIGUOUS_SLASH"]);
    check("a\n++/b/.c", &["PRESCANNER_AMBIGUOUS_SLASH"]);
    check("let a\n/b/.c", &["PRESCANNER_AMBIGUOUS_SLASH"]);
    check("var a, b\n/c/.d", &["PRESCANNER_AMBIGUOUS_SLASH"]);
    check(
        "a: for (const b of c) break a\n/d/.e",
        &["PRESCANNER_AMBIGUOUS_SLASH"],
    );
    check("const a = b\n  / c\n  / (d)\n  / e;", &[]);
    check("<!-- x", &["PRESCANNER_AMBIGUOUS_SLASH"]);
    check("return a-->b;", &[]);
    check("x\n--> y", &["PRESCANNER_AMBIGUOUS_SLASH"]);
    check("a.if(b) / 2 / 1", &[]);
    check_standard("return /[/]+/.test('a');", &[]);
    check_standard("return /(a+)+$/.test('a');", &["PRESCANNER_REDOS"]);
    check_standard("return `${a}/b`.length / 2;", &[]);
}

#[test]
fn every_kind_of_nesting_is_bounded() {
    let deep =
        |piece: &str, count: usize, tail: &str| [piece.repeat(count), String::from(tail)].concat();
    for text in [
        deep("(", 5_000, "1"),
        deep("[", 31, "1"),
        deep("{", 31, ""),
        deep("`${", 5_000, ""),
        deep("! ", 2_000, "1"),
        deep("typeof ", 2_000, "1"),
        deep("a=", 2_000, "1"),
        deep("a=>", 2_000, "1"),
        deep("a?a:", 2_000, "1"),
        deep("1+", 2_000, "1"),
        deep("a.b.", 2_000, "c"),
        deep("if(a)", 2_000, "b"),
        deep("if(a)\n", 900, "b"),
        deep("if(a)b;else ", 2_000, "b"),
        deep("if(a){}else ", 2_000, "{}"),
        deep("if(a)b,c;else ", 2_000, "b"),
        deep("if(a)do b;while(1)else ", 900, "b"),
        deep("do while(a) ", 900, "b"),
        deep("do\nwhile(a)\n", 400, "b"),
        deep("for(;;)", 2_000, ";"),
        deep("do ", 2_000, "a"),
        deep("a:", 2_000, "b"),
        deep("new ", 2_000, "a"),
        deep("await ", 2_000, "a"),
        deep("x={}+", 2_000, "1"),
        deep("{}in", 2_000, "{}"),
        deep("a+function()\n{}+", 900, "1"),
        deep("a+class B\n{}+", 900, "1"),
        deep("1..a", 1, &".a".repeat(2_000)),
        deep("a()", 1, &"()".repeat(2_000)),
        deep("a", 1, &"``".repeat(2_000)),
        deep("class extends ", 900, "a"),
        deep("a**", 2_000, "1"),
        deep("\na\n++", 900, "1"),
    ] {
        let (codes, scan) = look(&text, &Preset::agent_script(Trust::Secure));
        assert_eq!(
            codes,
            ["PRESCANNER_NESTING_OVERFLOW"],
            "{}",
            text.chars().take(40).collect::<String>()
        );
        assert!(
            scan.is_fatal && scan.bytes_read <= 8_000,
            "read {} bytes",
            scan.bytes_read
        );
    }
}

#[test]
fn long_flat_scripts_are_not_deep() {
    for line in [
        "const a = b + c * (d - 1)\n",
        "a.b.c(d).e\n",
        "if (a) b()\n",
        "if (a) { b() } else { c() }\n",
        "for (const a of b) c(a)\n",
        "x = { a: 1, b: [1, 2, 3] }\n",
        "const f = async (a) => { return a ?? 1 }\n",
        "do { a() } while (b)\n",
        "if (a) return\n",
    ] {
        let (codes, _) = look(&line.repeat(900), &Preset::agent_script(Trust::Secure));
        assert_eq!(codes, [""; 0], "{line}");
    }
    let wide = format!("return [{}];", "{ a: 1, b: 'x' },\n".repeat(900));
    check(&wide, &[]);
}

#[test]
fn a_hundred_megabytes_are_not_read() {
    let text = " a".repeat(50 * 1024 * 1024 + 1);
    for preset in [
        Preset::permissive(),
        Preset::agent_script(Trust::Permissive),
    ] {
        let (codes, scan) = look(&text, &preset);
        assert_eq!(codes, ["PRESCANNER_INPUT_TOO_LARGE"]);
        assert_eq!(scan.bytes_read, 0);
    }
    check("", &["PRESCANNER_INPUT_TOO_LARGE"]);
    check(" \n\t", &["PRESCANNER_INPUT_TOO_LARGE"]);
}

#[test]
fn caps_hold_whatever_a_preset_says() {
    let mut preset = Preset::permissive();
    preset.limits.nesting_max = 100_000;
    preset.limits.regex_count_max = 1_000;
    let (codes, _) = look(&"(".repeat(201), &preset);
    assert_eq!(codes, ["PRESCANNER_NESTING_OVERFLOW"]);
    let (codes, _) = look(&"a = /b/;\n".repeat(51), &preset);
    assert_eq!(codes, ["PRESCANNER_REGEX_COUNT"]);
}

#[test]
fn sizes_are_held() {
    check(
        &format!("// {}", "x".repeat(2_000)),
        &["PRESCANNER_LINE_TOO_LONG"],
    );
    check(&"a;\n".repeat(1_001), &["PRESCANNER_TOO_MANY_LINES"]);
    check(
        &format!("return `{}`;", "x\n".repeat(1_025)),
        &["PRESCANNER_TOO_MANY_LINES"],
    );
    let lines = format!("{}\n", "x".repeat(1_900)).repeat(6);
    check(
        &format!("return `{lines}`;"),
        &["PRESCANNER_STRING_TOO_LONG"],
    );
    check("a=!!!!!!b", &["PRESCANNER_OPERATOR_SPAM"]);
    check("return a===-1", &[]);
    check("const a = 'x", &["PARSE_ERROR"]);
    check("const a = (]", &["PARSE_ERROR"]);
    check("/* x", &["PARSE_ERROR"]);
}

#[test]
fn scanned_text_never_overflows_the_parser() {
    // At the very limit, in a debug build, on the small stack of a test thread.
    let fits = |piece: &str, tail: &str| {
        let preset = Preset::permissive();
        let mut count = 10;
        loop {
            let text = [piece.repeat(count), String::from(tail)].concat();
            let (codes, _) = look(&text, &preset);
            if codes.contains(&"PRESCANNER_NESTING_OVERFLOW") {
                return count;
            }
            let _ = crate::check(&text, &preset);
            count += 5;
            assert!(count < 1_000, "{piece} has no bound");
        }
    };
    for (piece, tail) in [
        ("! ", "1"),
        ("a=", "1"),
        ("a=>", "1"),
        ("a?a:", "1"),
        ("1+", "1"),
        ("a.b.", "c"),
        ("if(a)", "b"),
        ("if(a)b;else ", "b"),
        ("for(;;)", ";"),
        ("do ", "a"),
        ("a:", "b"),
        ("new ", "a"),
        ("a**", "1"),
        ("await ", "1"),
        ("typeof ", "1"),
    ] {
        fits(piece, tail);
    }
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("a(", ")"),
        ("`${", "}`"),
        ("()=>{", "}"),
        ("({a:", "})"),
    ] {
        for count in (1..=200).step_by(7) {
            let text = [open.repeat(count), String::from("1"), close.repeat(count)].concat();
            let mut preset = Preset::permissive();
            preset.limits.nesting_max = 200;
            let _ = crate::check(&text, &preset);
        }
    }
}
