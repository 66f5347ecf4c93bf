//! `Intl.NumberFormat`: decimals, percents, money, units, and short forms such
//! as `1.2K`. Options are resolved once; each number is then one call.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::intl::decimal::{Decimal, Rounding};
use crate::intl::option::Options;
use crate::intl::{Numbers, choose, range, type_error};
use crate::message::{PowerFault, PowerReply, PowerRequest};

const HELPER: &str = "Intl.NumberFormat";

/// Digits of one number; only a big integer can have so many.
pub const NUMBER_CHARS_MAX: usize = 10_000;

static DIGITS: OnceLock<HashMap<String, usize>> = OnceLock::new();

/// What a formatter does, as `resolvedOptions` shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resolved {
    locale: String,
    numbering_system: String,
    style: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency_display: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency_sign: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_display: Option<String>,
    minimum_integer_digits: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_fraction_digits: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum_fraction_digits: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_significant_digits: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum_significant_digits: Option<usize>,
    use_grouping: Value,
    notation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_display: Option<String>,
    sign_display: String,
    rounding_increment: usize,
    rounding_mode: String,
    rounding_priority: String,
    trailing_zero_display: String,
}

impl Resolved {
    fn is_bounded(&self) -> bool {
        let within = |count: Option<usize>, most| count.is_none_or(|count| count <= most);
        self.minimum_integer_digits <= 21
            && within(self.minimum_fraction_digits, 100)
            && within(self.maximum_fraction_digits, 100)
            && within(self.minimum_significant_digits, 21)
            && within(self.maximum_significant_digits, 21)
    }
}

/// Resolves `arguments.locales` and `arguments.options`.
///
/// # Errors
/// `range-error`, `type-error`.
pub fn resolve(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let choice = choose(ask, HELPER)?;
    let options = Options::new(ask.arguments.get("options"), HELPER);
    let mut resolved = Resolved {
        locale: choice.tag,
        numbering_system: "latn".to_owned(),
        rounding_increment: 1,
        rounding_priority: "auto".to_owned(),
        ..Resolved::default()
    };
    let word = |name, words: &[&str], default: &str| {
        options
            .word(name, words)
            .map(|word| word.unwrap_or_else(|| default.to_owned()))
    };
    resolved.style = word(
        "style",
        &["decimal", "percent", "currency", "unit"],
        "decimal",
    )?;
    let display = word(
        "currencyDisplay",
        &["code", "symbol", "narrowSymbol", "name"],
        "symbol",
    )?;
    let sign = word("currencySign", &["standard", "accounting"], "standard")?;
    let unit_display = word("unitDisplay", &["short", "narrow", "long"], "short")?;
    match resolved.style.as_str() {
        "currency" => {
            resolved.currency = Some(currency(&options)?);
            resolved.currency_display = Some(display);
            resolved.currency_sign = Some(sign);
        }
        "unit" => {
            let unit = options.word("unit", &[])?;
            let unit =
                unit.ok_or_else(|| type_error(HELPER, "Unit is required with unit style."))?;
            if !choice.language.numbers.units.contains_key(&unit) {
                let message = format!("Invalid unit argument for Intl.NumberFormat() '{unit}'");
                return Err(range(HELPER, message));
            }
            resolved.unit = Some(unit);
            resolved.unit_display = Some(unit_display);
        }
        _ => {}
    }
    resolved.notation = word("notation", &["standard", "compact"], "standard")?;
    if resolved.notation == "compact" {
        resolved.compact_display = Some(word("compactDisplay", &["short", "long"], "short")?);
    }
    digits(&mut resolved, &options)?;
    resolved.use_grouping = grouping(&options, &resolved.notation)?;
    let signs = &["auto", "always", "never", "exceptZero", "negative"];
    resolved.sign_display = word("signDisplay", signs, "auto")?;
    resolved.rounding_mode = word("roundingMode", Rounding::WORDS, "halfExpand")?;
    resolved.trailing_zero_display =
        word("trailingZeroDisplay", &["auto", "stripIfInteger"], "auto")?;
    Ok(PowerReply {
        value: json!(resolved),
        bytes: Vec::new(),
    })
}

/// The parts of `arguments.value`, a number as text, by what [`resolve`] gave:
/// a list of `[type, text]`.
///
/// # Errors
/// `range-error` for a number with too many digits.
pub fn format(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let raw = ask.arguments.get("resolved").cloned().unwrap_or_default();
    let resolved: Resolved =
        serde_json::from_value(raw).map_err(|_| type_error(HELPER, "this is no formatter"))?;
    // A face sends back what `resolve` gave; a broken sandbox may send anything.
    if !resolved.is_bounded() {
        return Err(type_error(HELPER, "this is no formatter"));
    }
    let text = ask
        .arguments
        .get("value")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if text.len() > NUMBER_CHARS_MAX {
        return Err(range(
            HELPER,
            format!("more than {NUMBER_CHARS_MAX} digits in one number"),
        ));
    }
    let locales = PowerRequest {
        arguments: json!({ "locales": resolved.locale }),
        bytes: Vec::new(),
    };
    let language = choose(&locales, HELPER)?.language;
    let writer = Writer {
        resolved: &resolved,
        numbers: &language.numbers,
        tag: &language.locale,
    };
    Ok(PowerReply {
        value: json!(writer.write(text)),
        bytes: Vec::new(),
    })
}

fn currency(options: &Options<'_>) -> Result<String, PowerFault> {
    let raw = options.word("currency", &[])?;
    let raw =
        raw.ok_or_else(|| type_error(HELPER, "Currency code is required with currency style."))?;
    match raw.len() == 3 && raw.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        true => Ok(raw.to_ascii_uppercase()),
        false => Err(range(HELPER, format!("Invalid currency code : {raw}"))),
    }
}

/// Fraction digits of a currency.
fn currency_digits(code: &str) -> usize {
    let text = include_str!("../../data/intl/currencies.json");
    let digits = DIGITS.get_or_init(|| serde_json::from_str(text).unwrap_or_default());
    digits.get(code).copied().unwrap_or(2)
}

fn digits(resolved: &mut Resolved, options: &Options<'_>) -> Result<(), PowerFault> {
    let is_compact = resolved.notation == "compact";
    let (least_default, most_default) = match (resolved.style.as_str(), &resolved.currency) {
        ("currency", Some(code)) if !is_compact => {
            let count = currency_digits(code);
            (count, count)
        }
        ("percent", _) => (0, 0),
        (_, _) if is_compact => (0, 0),
        (_, _) => (0, 3),
    };
    resolved.minimum_integer_digits = options.count("minimumIntegerDigits", 1, 21)?.unwrap_or(1);
    let least = options.count("minimumFractionDigits", 0, 100)?;
    let most = options.count("maximumFractionDigits", 0, 100)?;
    let has_significant = options.raw("minimumSignificantDigits").is_some()
        || options.raw("maximumSignificantDigits").is_some();
    if has_significant {
        let least = options
            .count("minimumSignificantDigits", 1, 21)?
            .unwrap_or(1);
        let most = options
            .count("maximumSignificantDigits", least, 21)?
            .unwrap_or(21);
        resolved.minimum_significant_digits = Some(least);
        resolved.maximum_significant_digits = Some(most);
        return Ok(());
    }
    let (least, most) = match (least, most) {
        (Some(least), Some(most)) if least > most => {
            return Err(range(
                HELPER,
                "maximumFractionDigits value is out of range.",
            ));
        }
        (Some(least), Some(most)) => (least, most),
        (Some(least), None) => (least, most_default.max(least)),
        (None, Some(most)) => (least_default.min(most), most),
        (None, None) if is_compact => {
            // Two digits below ten, whole numbers above.
            resolved.minimum_significant_digits = Some(1);
            resolved.maximum_significant_digits = Some(2);
            resolved.rounding_priority = "morePrecision".to_owned();
            (0, 0)
        }
        (None, None) => (least_default, most_default),
    };
    resolved.minimum_fraction_digits = Some(least);
    resolved.maximum_fraction_digits = Some(most);
    Ok(())
}

fn grouping(options: &Options<'_>, notation: &str) -> Result<Value, PowerFault> {
    let auto = if notation == "compact" {
        "min2"
    } else {
        "auto"
    };
    Ok(match options.raw("useGrouping") {
        None => Value::from(auto),
        Some(Value::Bool(true)) => Value::from("always"),
        Some(Value::Bool(false)) => Value::Bool(false),
        Some(Value::String(word)) if matches!(word.as_str(), "true" | "false") => Value::from(auto),
        Some(_) => options
            .word("useGrouping", &["min2", "auto", "always"])?
            .map_or(Value::Bool(false), Value::from),
    })
}

type Part = (&'static str, String);

struct Writer<'data> {
    resolved: &'data Resolved,
    numbers: &'data Numbers,
    tag: &'data str,
}

/// What stands around the digits, where `-` and `¤` are marks yet.
struct Affixes {
    before: String,
    after: String,
    /// What a word in them is: `compact`, `unit` or `literal`.
    word: &'static str,
    /// Whether the words are the whole number.
    stands_alone: bool,
    is_one: bool,
}

impl Writer<'_> {
    fn write(&self, text: &str) -> Vec<Part> {
        let is_negative = text.starts_with('-');
        let (digits, is_negative, is_zero, affixes) = match text {
            "NaN" => (
                vec![("nan", self.numbers.nan.clone())],
                false,
                true,
                self.affixes(None),
            ),
            "Infinity" | "-Infinity" => {
                let infinity = vec![("infinity", self.numbers.infinity.clone())];
                (infinity, is_negative, false, self.affixes(None))
            }
            _ => {
                let mut decimal = Decimal::parse(text).unwrap_or_else(Decimal::zero);
                if self.resolved.style == "percent" {
                    decimal.shift(2);
                }
                let power = self.settle(&mut decimal);
                let affixes = self.affixes(Some((&decimal, power)));
                let is_zero = decimal.is_zero();
                (self.digits(&decimal), is_negative, is_zero, affixes)
            }
        };
        let sign = match (self.resolved.sign_display.as_str(), is_negative, is_zero) {
            ("never", _, _) | ("exceptZero" | "negative", _, true) => "",
            ("always", false, _) | ("exceptZero", false, false) => "+",
            (_, true, _) => "-",
            (_, false, _) => "",
        };
        self.assemble(digits, sign, &affixes)
    }

    /// Rounds; in the short form also takes zeros off, and says at which power
    /// of ten it ended up.
    fn settle(&self, decimal: &mut Decimal) -> usize {
        let Some(forms) = self.forms() else {
            self.round(decimal);
            return 0;
        };
        let whole = decimal.clone();
        let mut power = usize::try_from(whole.point() - 1).unwrap_or(0);
        // Rounding may carry into the next form: 999 999 is 1M, not 1000K.
        for _ in 0..2 {
            power = power.min(forms.len().saturating_sub(1));
            let zeros = forms.get(power).map_or(0, |form| form.0);
            let zeros = i64::try_from(zeros).unwrap_or(0);
            decimal.clone_from(&whole);
            decimal.shift(-zeros);
            self.round(decimal);
            let reached = usize::try_from(decimal.point() - 1 + zeros).unwrap_or(0);
            if reached == power {
                break;
            }
            power = reached;
        }
        power
    }

    fn forms(&self) -> Option<&[crate::intl::Compact]> {
        let display = self.resolved.compact_display.as_ref()?;
        self.numbers.compact.get(display).map(Vec::as_slice)
    }

    fn round(&self, decimal: &mut Decimal) {
        let rounding = Rounding::parse(&self.resolved.rounding_mode);
        let resolved = self.resolved;
        match (
            resolved.maximum_significant_digits,
            resolved.maximum_fraction_digits,
        ) {
            (Some(significant), Some(_)) => {
                match decimal.point() > i64::try_from(significant).unwrap_or(i64::MAX) {
                    true => decimal.round_fraction(0, rounding),
                    false => decimal.round_significant(significant, rounding),
                }
            }
            (Some(significant), None) => decimal.round_significant(significant, rounding),
            (None, fraction) => decimal.round_fraction(fraction.unwrap_or(3), rounding),
        }
    }

    fn digits(&self, decimal: &Decimal) -> Vec<Part> {
        let resolved = self.resolved;
        let (mut whole, mut fraction) = decimal.split();
        let least = match (
            resolved.minimum_significant_digits,
            resolved.minimum_fraction_digits,
        ) {
            (Some(significant), None) => {
                let used = usize::try_from(decimal.point().max(0)).unwrap_or(0);
                let zeros = usize::try_from((-decimal.point()).max(0)).unwrap_or(0);
                // A lone zero counts as one digit.
                let used = if decimal.is_zero() { 1 } else { used };
                (significant + zeros).saturating_sub(used)
            }
            (_, fraction) => fraction.unwrap_or(0),
        };
        while fraction.len() < least {
            fraction.push('0');
        }
        if resolved.trailing_zero_display == "stripIfInteger"
            && fraction.bytes().all(|byte| byte == b'0')
        {
            fraction.clear();
        }
        while whole.len() < resolved.minimum_integer_digits {
            whole.insert(0, '0');
        }
        let mut parts = self.groups(&whole);
        if !fraction.is_empty() {
            parts.push(("decimal", self.numbers.decimal.clone()));
            parts.push(("fraction", fraction));
        }
        parts
    }

    fn groups(&self, whole: &str) -> Vec<Part> {
        let least = match self.resolved.use_grouping.as_str() {
            None => return vec![("integer", whole.to_owned())],
            Some("always") => 1,
            Some("min2") => 2,
            Some(_) => self.numbers.grouping_min,
        };
        if whole.len() < 3 + least {
            return vec![("integer", whole.to_owned())];
        }
        let mut parts = Vec::new();
        let mut group = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                parts.push(("integer", std::mem::take(&mut group)));
                parts.push(("group", self.numbers.group.clone()));
            }
            group.push(digit);
        }
        parts.push(("integer", group));
        parts
    }

    fn affixes(&self, number: Option<(&Decimal, usize)>) -> Affixes {
        let is_one = number.is_some_and(|(decimal, _)| self.is_one(decimal));
        let pair = |[before, after]: &[String; 2], word| Affixes {
            before: before.clone(),
            after: after.clone(),
            word,
            stands_alone: false,
            is_one,
        };
        let mut affixes = match self.resolved.style.as_str() {
            "percent" => pair(&self.numbers.percent, "literal"),
            "unit" => self.unit(is_one),
            "currency" => match self.resolved.currency_display.as_deref() {
                Some("code") => pair(&self.numbers.currency_code, "literal"),
                Some("name") => pair(&self.numbers.currency_name, "literal"),
                Some(_) | None => pair(&self.numbers.currency, "literal"),
            },
            _ => pair(&[String::new(), String::new()], "literal"),
        };
        let form = number.and_then(|(decimal, power)| Some((decimal, self.forms()?.get(power)?)));
        if let Some((decimal, (_, before, after, before_one, after_one, alone))) = form {
            let is_exact = decimal.split() == ("1".to_owned(), String::new());
            let (before, after) = match (is_one, alone.as_deref().filter(|_| is_exact)) {
                (_, Some(word)) => {
                    affixes.stands_alone = true;
                    (word, "")
                }
                (true, None) => (before_one.as_str(), after_one.as_str()),
                (false, None) => (before.as_str(), after.as_str()),
            };
            affixes.before.push_str(before);
            affixes.after.insert_str(0, after);
            affixes.word = "compact";
        }
        affixes
    }

    fn unit(&self, is_one: bool) -> Affixes {
        let forms = self
            .resolved
            .unit
            .as_ref()
            .and_then(|unit| self.numbers.units.get(unit));
        let form = forms.and_then(|forms| forms.get(self.resolved.unit_display.as_ref()?));
        let (before, after) = match (form, is_one) {
            (Some([before, after, _, _]), false) | (Some([_, _, before, after]), true) => {
                (before.clone(), after.clone())
            }
            (None, _) => (String::new(), String::new()),
        };
        Affixes {
            before,
            after,
            word: "unit",
            stands_alone: false,
            is_one,
        }
    }

    /// Whether the language speaks of one.
    fn is_one(&self, decimal: &Decimal) -> bool {
        let (whole, fraction) = decimal.split();
        let shown = self
            .resolved
            .minimum_fraction_digits
            .unwrap_or(0)
            .max(fraction.len());
        match self.tag.split('-').next() {
            Some("fr") => matches!(whole.as_str(), "0" | "1"),
            Some("es") => whole == "1" && fraction.is_empty(),
            _ => whole == "1" && shown == 0,
        }
    }

    fn assemble(&self, digits: Vec<Part>, sign: &str, affixes: &Affixes) -> Vec<Part> {
        let is_symbol = self.resolved.style == "currency"
            && !matches!(self.resolved.currency_display.as_deref(), Some("name"));
        let is_accounting = self.resolved.currency_sign.as_deref() == Some("accounting");
        let [accounting_before, accounting_after] = &self.numbers.accounting;
        let [negative_before, _] = &self.numbers.currency_negative;
        let (before, after) = match (is_symbol && sign == "-", is_accounting) {
            (true, true) => (
                accounting_before.clone(),
                affixes_after(accounting_after, &affixes.after),
            ),
            (true, false) if !negative_before.starts_with('-') && !negative_before.is_empty() => {
                (negative_before.clone(), affixes.after.clone())
            }
            (_, _) => (format!("{sign}{}", affixes.before), affixes.after.clone()),
        };
        let mut parts = Vec::new();
        self.affix(&before, affixes, Side::Before, &mut parts);
        if !affixes.stands_alone {
            parts.extend(digits);
        }
        self.affix(&after, affixes, Side::After, &mut parts);
        parts
    }

    /// Splits what stands around the digits into parts.
    fn affix(&self, text: &str, affixes: &Affixes, side: Side, parts: &mut Vec<Part>) {
        let word = affixes.word;
        let mut held = String::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let part = match letter {
                '-' => ("minusSign", self.numbers.minus.clone()),
                '+' => ("plusSign", self.numbers.plus.clone()),
                '%' if word != "unit" => ("percentSign", "%".to_owned()),
                '\u{a4}' => ("currency", self.symbol(affixes.is_one)),
                letter => {
                    held.push(letter);
                    continue;
                }
            };
            spill(&mut held, word, parts);
            let touches = match side {
                Side::Before => letters.peek().is_none(),
                Side::After => parts
                    .last()
                    .is_some_and(|(kind, _)| matches!(*kind, "integer" | "fraction")),
            };
            // A symbol of letters keeps its distance: CHF 5.
            let is_name = self.resolved.currency_display.as_deref() == Some("name");
            let is_wordy = part.0 == "currency" && !is_name && touches && wordy(&part.1, side);
            if is_wordy && side == Side::After {
                parts.push(("literal", "\u{a0}".to_owned()));
            }
            parts.push(part);
            if is_wordy && side == Side::Before {
                parts.push(("literal", "\u{a0}".to_owned()));
            }
        }
        spill(&mut held, word, parts);
    }

    fn symbol(&self, is_one: bool) -> String {
        let code = self.resolved.currency.clone().unwrap_or_default();
        let Some([symbol, narrow, one, many]) = self.numbers.currencies.get(&code) else {
            return code;
        };
        match self.resolved.currency_display.as_deref() {
            Some("code") => code,
            Some("narrowSymbol") => narrow.clone(),
            Some("name") if is_one => one.clone(),
            Some("name") => many.clone(),
            Some(_) | None => symbol.clone(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

fn wordy(symbol: &str, side: Side) -> bool {
    let letter = match side {
        Side::Before => symbol.chars().next_back(),
        Side::After => symbol.chars().next(),
    };
    letter.is_some_and(char::is_alphabetic)
}

fn affixes_after(accounting: &str, own: &str) -> String {
    match own.is_empty() || accounting.contains('\u{a4}') {
        true => accounting.to_owned(),
        false => format!("{own}{accounting}"),
    }
}

/// Words become a part of their own; the space around them is literal.
fn spill(held: &mut String, word: &'static str, parts: &mut Vec<Part>) {
    let text = std::mem::take(held);
    if text.is_empty() {
        return;
    }
    let core = text.trim();
    if word == "literal" || core.is_empty() {
        parts.push(("literal", text));
        return;
    }
    let (lead, _) = text.split_once(core).unwrap_or_default();
    let trail = text.trim_start().strip_prefix(core).unwrap_or_default();
    if !lead.is_empty() {
        parts.push(("literal", lead.to_owned()));
    }
    parts.push((word, core.to_owned()));
    if !trail.is_empty() {
        parts.push(("literal", trail.to_owned()));
    }
}
