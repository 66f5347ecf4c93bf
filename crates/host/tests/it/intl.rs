//! Dates, numbers and order as another engine has them, and what only we say.

use serde_json::{Value, json};

use crate::face::{call, reason, run};

/// Compares every row of a recorded file, all in one engine, and lists what
/// differs.
#[track_caller]
fn compare(file: &str, script: &str) {
    let path = format!(
        "{}/../../cases/host/intl/{file}",
        env!("CARGO_MANIFEST_DIR")
    );
    let rows = std::fs::read_to_string(path).unwrap();
    let differing = run(&format!(
        "const rows = {rows}; const different = []; {script} return different;"
    ));
    let different = differing
        .as_array()
        .unwrap_or_else(|| panic!("{differing}"));
    assert!(
        different.is_empty(),
        "{} rows differ, the first of them:\n{}",
        different.len(),
        different
            .iter()
            .take(40)
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn dates_are_as_recorded() {
    compare(
        "dates.json",
        "for (const [locale, options, time, text, parts] of rows) {
            const format = new Intl.DateTimeFormat(locale, options);
            const own = format.format(time);
            if (own !== text) different.push([locale, options, text, own]);
            const ownParts = JSON.stringify(format.formatToParts(time).map(({ type, value }) => [type, value]));
            if (parts && ownParts !== JSON.stringify(parts)) different.push([locale, options, parts, ownParts]);
        }",
    );
}

#[test]
fn numbers_are_as_recorded() {
    compare(
        "numbers.json",
        "for (const [locale, options, value, text, parts] of rows) {
            const format = new Intl.NumberFormat(locale, options);
            const own = format.format(value.length > 25 ? BigInt(value) : Number(value));
            if (own !== text) different.push([locale, options, value, text, own]);
            const ownParts = JSON.stringify(format.formatToParts(Number(value)).map(({ type, value }) => [type, value]));
            if (parts && ownParts !== JSON.stringify(parts)) different.push([locale, options, parts, ownParts]);
        }",
    );
}

#[test]
fn order_is_as_recorded() {
    compare(
        "order.json",
        "for (const [locale, options, words, sorted] of rows) {
            const own = [...words].sort(new Intl.Collator(locale, options).compare);
            if (JSON.stringify(own) !== JSON.stringify(sorted)) different.push([locale, options, sorted, own]);
        }",
    );
}

#[track_caller]
fn check(script: &str, expected: Value) {
    assert_eq!(run(script), expected, "{script}");
}

#[test]
fn the_parts_that_catalog_tools_read_are_there() {
    check(
        "const parts = new Intl.DateTimeFormat('en-CA', { timeZone: 'Asia/Seoul', year: 'numeric', month: '2-digit', day: '2-digit',
            hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false, fractionalSecondDigits: 3, weekday: 'short' })
            .formatToParts(new Date(Date.UTC(2024, 2, 5, 7, 4, 9, 123)));
         return Object.fromEntries(parts.filter((part) => part.type !== 'literal').map((part) => [part.type, part.value]));",
        json!({ "weekday": "Tue", "year": "2024", "month": "03", "day": "05", "hour": "16", "minute": "04",
            "second": "09", "fractionalSecond": "123" }),
    );
}

#[test]
fn an_unknown_zone_is_a_range_error() {
    check(
        "return [ 'Mars/Olympus', '', 'UTC+25', '+25:00', '../etc/passwd' ].map((timeZone) => {
            try { return new Intl.DateTimeFormat('en', { timeZone }).format(0); } catch (e) { return [e instanceof RangeError, e.message.includes('time zone')]; }
        });",
        json!([[true, true], [true, true], [true, true], [true, true], [true, true]]),
    );
}

#[test]
fn zones_are_found_in_any_case_and_as_offsets() {
    check(
        "return ['america/new_york', 'utc', 'GMT', 'Asia/Kolkata', '+05:30'].map((timeZone) => new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone);",
        json!(["America/New_York", "UTC", "UTC", "Asia/Kolkata", "+05:30"]),
    );
    check(
        "return Intl.supportedValuesOf('timeZone').includes('Europe/Paris')",
        json!(true),
    );
    check(
        "try { Intl.supportedValuesOf('x') } catch (e) { return e.name }",
        json!("RangeError"),
    );
}

#[test]
fn wrong_options_are_errors_with_their_class() {
    let cases = [
        (
            "new Intl.DateTimeFormat('en', { month: 'big' })",
            "RangeError",
        ),
        (
            "new Intl.DateTimeFormat('en', { fractionalSecondDigits: 4 })",
            "RangeError",
        ),
        (
            "new Intl.DateTimeFormat('en', { dateStyle: 'full', hour: 'numeric' })",
            "TypeError",
        ),
        ("new Intl.DateTimeFormat('not a tag')", "RangeError"),
        ("new Intl.DateTimeFormat(null)", "TypeError"),
        ("new Intl.DateTimeFormat().format(NaN)", "RangeError"),
        ("new Intl.DateTimeFormat().format(8.65e15)", "RangeError"),
        (
            "new Intl.NumberFormat('en', { style: 'currency' })",
            "TypeError",
        ),
        (
            "new Intl.NumberFormat('en', { style: 'currency', currency: 'DOLLAR' })",
            "RangeError",
        ),
        (
            "new Intl.NumberFormat('en', { style: 'unit' })",
            "TypeError",
        ),
        (
            "new Intl.NumberFormat('en', { style: 'unit', unit: 'parsec' })",
            "RangeError",
        ),
        (
            "new Intl.NumberFormat('en', { minimumFractionDigits: 5, maximumFractionDigits: 2 })",
            "RangeError",
        ),
        (
            "new Intl.NumberFormat('en', { maximumFractionDigits: 101 })",
            "RangeError",
        ),
        (
            "new Intl.NumberFormat('en', { maximumFractionDigits: NaN })",
            "RangeError",
        ),
        (
            "new Intl.NumberFormat().format('9'.repeat(20000))",
            "RangeError",
        ),
        (
            "new Intl.Collator('en', { sensitivity: 'none' })",
            "RangeError",
        ),
    ];
    for (script, class) in cases {
        check(
            &format!("try {{ {script}; return 'no error'; }} catch (e) {{ return e.name; }}"),
            json!(class),
        );
    }
}

#[test]
fn methods_of_dates_numbers_and_strings_follow() {
    check(
        "return new Date(0).toLocaleDateString('de-DE')",
        json!("1.1.1970"),
    );
    check(
        "return new Date(0).toLocaleTimeString('en-GB')",
        json!("00:00:00"),
    );
    check(
        "return new Date(0).toLocaleString('sv-SE')",
        json!("1970-01-01 00:00:00"),
    );
    check(
        "return new Date(0).toLocaleDateString('en-US', { timeZone: 'America/New_York' })",
        json!("12/31/1969"),
    );
    check(
        "return new Date(NaN).toLocaleString()",
        json!("Invalid Date"),
    );
    check(
        "return (1234567.891).toLocaleString()",
        json!("1,234,567.891"),
    );
    check(
        "return (1234.5).toLocaleString('de-DE', { style: 'currency', currency: 'EUR' })",
        json!("1.234,50\u{a0}€"),
    );
    check(
        "return 12345678901234567890n.toLocaleString('en-US')",
        json!("12,345,678,901,234,567,890"),
    );
    check(
        "return [1234.5, new Date(0)].toLocaleString('en-US')",
        json!("1,234.5,1/1/1970, 12:00:00 AM"),
    );
    check(
        "return ['b', 'a', 'C', 'B'].sort((x, y) => x.localeCompare(y))",
        json!(["a", "b", "B", "C"]),
    );
    check(
        "return ['a10', 'a9'].sort((x, y) => x.localeCompare(y, undefined, { numeric: true }))",
        json!(["a9", "a10"]),
    );
    check(
        "return ['a'.localeCompare('á', 'en', { sensitivity: 'base' }), 'a'.localeCompare('á'), 'a'.localeCompare('a')]",
        json!([0, -1, 0]),
    );
}

#[test]
fn resolved_options_tell_what_is_shown() {
    check(
        "const own = new Intl.DateTimeFormat('en-US', { hour: 'numeric', minute: 'numeric', hour12: false }).resolvedOptions();
         return [own.locale, own.calendar, own.numberingSystem, own.timeZone, own.hour12, own.hour, own.minute];",
        json!(["en-US", "gregory", "latn", "UTC", false, "2-digit", "2-digit"]),
    );
    check(
        "return Intl.DateTimeFormat('tlh').resolvedOptions().locale",
        json!("en-US"),
    );
    check(
        "return Intl.DateTimeFormat('en-AU').format(0)",
        json!("01/01/1970"),
    );
    check(
        "return Intl.NumberFormat('de').resolvedOptions().maximumFractionDigits",
        json!(3),
    );
    check(
        "return Intl.DateTimeFormat.supportedLocalesOf(['de-AT', 'tlh'])",
        json!(["de-AT"]),
    );
    check(
        "return Intl.getCanonicalLocales(['EN-us', 'zh-hans-cn'])",
        json!(["en-US", "zh-Hans-CN"]),
    );
    check(
        "return ['en', 'fr', 'ja'].map((tag) => [0, 1, 2].map((n) => new Intl.PluralRules(tag).select(n)).join())",
        json!(["other,one,other", "one,one,other", "other,other,other"]),
    );
    check(
        "return new Intl.DateTimeFormat('en-US-u-hc-h23', { hour: 'numeric', minute: 'numeric' }).format(0)",
        json!("00:00"),
    );
}

#[test]
fn what_a_broken_sandbox_sends_is_refused() {
    let number = |resolved: Value| {
        call(
            "intl.numberFormat",
            json!({ "resolved": resolved, "value": "1" }),
            &[],
        )
    };
    for name in [
        "minimumIntegerDigits",
        "minimumFractionDigits",
        "minimumSignificantDigits",
    ] {
        assert_eq!(
            reason(number(json!({ name: 1_u64 << 60 }))),
            "INVALID_INPUT type-error"
        );
    }
    assert_eq!(reason(number(json!("x"))), "INVALID_INPUT type-error");
    assert!(number(json!({ "locale": "en-US" })).is_ok());
    let date = |pattern: String| {
        let resolved = json!({ "timeZone": "UTC", "locale": "en-US" });
        call(
            "intl.dateFormat",
            json!({ "resolved": resolved, "pattern": pattern, "time": 0 }),
            &[],
        )
    };
    assert_eq!(
        reason(date("{z}".repeat(1_000_000))),
        "INVALID_INPUT type-error"
    );
    assert_eq!(
        date("{E99} {y {q}".to_owned()).unwrap().0,
        json!([["weekday", ""], ["literal", " "]])
    );
}
