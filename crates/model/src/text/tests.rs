//! Nothing hidden stays hidden, and nothing is hidden for nothing.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(raw: &str, expected: &str) {
    assert_eq!(one_line(raw), expected);
}

#[test]
fn hidden_characters_are_shown() {
    check("plain text, naïve 日本語 🙂", "plain text, naïve 日本語 🙂");
    check("\u{1b}[2Jgone", "\\u{1b}[2Jgone");
    check("\u{9b}2Jgone\u{7f}", "\\u{9b}2Jgone\\u{7f}");
    check(
        "a\u{202e}b\u{200b}c\u{feff}",
        "a\\u{202e}b\\u{200b}c\\u{feff}",
    );
    check("tag\u{e0041}s\u{fdd0}", "tag\\u{e0041}s\\u{fdd0}");
    check("two\nlines\tand\rmore", "two\\nlines and\\rmore");
}

#[test]
fn marks_do_not_pile_up() {
    check("Việt e\u{302}\u{301}", "Việt e\u{302}\u{301}");
    // In any script, and whatever is written with marks is left as it is.
    for mark in ['\u{670}', '\u{2de0}', '\u{1cd0}', '\u{f71}', '\u{8e4}'] {
        let pile = |count| format!("z{}", mark.to_string().repeat(count));
        check(&pile(3), &pile(3));
        let shown = one_line(&pile(5));
        assert!(
            shown.starts_with(&pile(3)) && shown.ends_with('}'),
            "{shown}"
        );
    }
    for text in [
        "नमस्ते",
        "สวัสดีครับ",
        "שָׁלוֹם",
        "العَرَبِيَّة",
        "日本語　です",
        "👍🏽 👩‍",
    ] {
        let kept = text.replace('\u{200d}', "\\u{200d}");
        check(text, &kept);
    }
    check(
        "z\u{301}\u{301}\u{301}\u{301}\u{301}y",
        "z\u{301}\u{301}\u{301}\\u{301}\\u{301}y",
    );
}

#[test]
fn json_stays_the_same_value_without_hidden_characters() {
    let value = "a\u{9b}b\u{7f}c\u{202e}d\u{e0041}e\u{1b}\n日本";
    let json = serde_json::to_string_pretty(&[value]).expect("JSON");
    let shown = json_line(&json);
    assert_eq!(
        shown,
        "[\n  \"a\\u009bb\\u007fc\\u202ed\\udb40\\udc41e\\u001b\\n日本\"\n]"
    );
    let back: [String; 1] = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(back, [value]);
}

#[test]
fn runs_of_spaces_are_counted() {
    assert_eq!(folded("a b  c   d"), "a b  c   d");
    assert_eq!(folded("a    b"), "a\\u{20 ×4}b");
    assert_eq!(folded(&" ".repeat(8_000)), "\\u{20 ×8000}");
}

#[test]
fn elision_keeps_both_ends_and_counts_the_rest() {
    assert_eq!(elided("short", 10), "short");
    assert_eq!(elided("0123456789abcdef", 8), "0123…def");
    assert_eq!(elided("version_control", 14), "version…ontrol");
    let long = "x".repeat(50) + "end";
    assert_eq!(
        elided(&long, 40),
        format!("{} …24 more… {}end", "x".repeat(15), "x".repeat(11))
    );
}

#[test]
fn a_shell_takes_a_word_as_one_argument() {
    assert_eq!(shell_word("countWords"), "countWords");
    assert_eq!(
        shell_word("/srv/ring-fence/a.json"),
        "/srv/ring-fence/a.json"
    );
    assert_eq!(shell_word(""), "''");
    assert_eq!(shell_word("two words"), "'two words'");
    assert_eq!(shell_word("a;b$(c)`d`"), "'a;b$(c)`d`'");
    assert_eq!(shell_word("it's"), r"'it'\''s'");
    assert_eq!(shell_word("~/x*"), "'~/x*'");
    // What would be run is what is read.
    assert_eq!(shell_word("a\u{202e}b\nc"), r"'a\u{202e}b\nc'");
    assert_eq!(shell_argument("x"), "x");
    assert_eq!(shell_argument("-rf"), "-- -rf");
    assert_eq!(shell_argument("-r f"), "-- '-r f'");
}

proptest! {
    /// The text is whole, or it is as long as it may be, keeps both ends, and says
    /// exactly how much is missing, which is more than saying so takes.
    #[test]
    fn elision_keeps_to_its_bound(text in "[a-z]{0,300}", chars_max in 1_usize..320) {
        let shown = elided(&text, chars_max);
        let count = shown.chars().count();
        prop_assert!(count <= chars_max);
        if text.len() <= chars_max {
            prop_assert_eq!(shown, text);
            return Ok(());
        }
        prop_assert_eq!(count, chars_max);
        let (head, rest) = shown.split_once('…').expect("a mark");
        let tail = match rest.split_once('…') {
            None => rest,
            Some((words, tail)) => {
                let missing: usize = words.strip_suffix(" more").expect("words").parse().expect("a count");
                let (head, tail) = (head.trim_end(), tail.trim_start());
                prop_assert_eq!(missing, text.len() - head.len() - tail.len());
                let words = chars_max - head.len() - tail.len();
                prop_assert!(missing > words, "{} characters about {}", words, missing);
                tail
            }
        };
        prop_assert!(text.starts_with(head.trim_end()) && text.ends_with(tail.trim_start()));
    }

    /// Folding loses nothing.
    #[test]
    fn folded_spaces_can_be_counted_back(text in "[a-z ]{0,80}") {
        let mut whole = String::new();
        let mut rest = folded(&text);
        while let Some((before, after)) = rest.clone().split_once("\\u{20 ×") {
            let (spaces, after) = after.split_once('}').expect("an end");
            whole.push_str(before);
            whole.push_str(&" ".repeat(spaces.parse().expect("a count")));
            after.clone_into(&mut rest);
        }
        prop_assert_eq!(whole + &rest, text);
    }

    /// Once shown, it stays so, and JSON stays JSON.
    #[test]
    fn no_hidden_character_stays_hidden(text in any::<String>()) {
        let shown = one_line(&text);
        prop_assert!(!shown.chars().any(is_hidden));
        prop_assert_eq!(one_line(&shown), shown.clone());
        let json = json_line(&serde_json::to_string(&text).expect("JSON"));
        prop_assert!(!json.chars().any(is_hidden));
        prop_assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
    }
}
