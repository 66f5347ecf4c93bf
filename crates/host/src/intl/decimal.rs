//! Decimal numbers as digits, so that rounding is exact. A double is taken by
//! its shortest text, as other engines do: 1.005 rounds to 1.01.

/// `0.d1d2d3… × 10^point`, without leading zeros; no digits mean zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) is_negative: bool,
    digits: Vec<u8>,
    point: i64,
}

/// Where to go when digits are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Ceil,
    Floor,
    Expand,
    Trunc,
    HalfCeil,
    HalfFloor,
    HalfExpand,
    HalfTrunc,
    HalfEven,
}

impl Rounding {
    pub(super) const WORDS: &[&str] = &[
        "ceil",
        "floor",
        "expand",
        "trunc",
        "halfCeil",
        "halfFloor",
        "halfExpand",
        "halfTrunc",
        "halfEven",
    ];

    pub(super) fn parse(word: &str) -> Rounding {
        match word {
            "ceil" => Rounding::Ceil,
            "floor" => Rounding::Floor,
            "expand" => Rounding::Expand,
            "trunc" => Rounding::Trunc,
            "halfCeil" => Rounding::HalfCeil,
            "halfFloor" => Rounding::HalfFloor,
            "halfTrunc" => Rounding::HalfTrunc,
            "halfEven" => Rounding::HalfEven,
            _ => Rounding::HalfExpand,
        }
    }
}

impl Decimal {
    pub(super) fn zero() -> Decimal {
        Decimal {
            is_negative: false,
            digits: Vec::new(),
            point: 0,
        }
    }

    /// Reads what `String(number)` or `String(bigint)` gives.
    pub(super) fn parse(text: &str) -> Option<Decimal> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent
            .parse()
            .ok()
            .filter(|power: &i64| power.abs() < 1_000)?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut digits = Vec::with_capacity(whole.len() + fraction.len());
        for byte in whole.bytes().chain(fraction.bytes()) {
            digits.push(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
        }
        let point = i64::try_from(whole.len()).ok()? + exponent;
        let mut decimal = Decimal {
            is_negative,
            digits,
            point,
        };
        decimal.trim();
        Some(decimal)
    }

    fn trim(&mut self) {
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.point -= i64::try_from(zeros).unwrap_or(i64::MAX);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Digits before the point; zero or less for a fraction.
    pub(super) fn point(&self) -> i64 {
        self.point
    }

    /// Times ten to the power.
    pub(super) fn shift(&mut self, power: i64) {
        if !self.is_zero() {
            self.point += power;
        }
    }

    /// Keeps so many digits behind the point.
    pub(super) fn round_fraction(&mut self, count: usize, rounding: Rounding) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.cut(self.point.saturating_add(count), rounding);
    }

    /// Keeps so many digits in all.
    pub(super) fn round_significant(&mut self, count: usize, rounding: Rounding) {
        self.cut(i64::try_from(count).unwrap_or(i64::MAX), rounding);
    }

    fn cut(&mut self, kept: i64, rounding: Rounding) {
        let length = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        if kept >= length {
            return;
        }
        let kept_count = usize::try_from(kept).unwrap_or(0);
        let lost = match kept < 0 {
            // Everything lies below half of the last kept place.
            true => Vec::new(),
            false => self.digits.split_off(kept_count),
        };
        let half = match (lost.first(), lost.get(1..)) {
            (Some(5), Some(rest)) if rest.iter().all(|digit| *digit == 0) => {
                std::cmp::Ordering::Equal
            }
            (Some(digit), _) if *digit >= 5 => std::cmp::Ordering::Greater,
            (_, _) => std::cmp::Ordering::Less,
        };
        let is_odd = self.digits.last().is_some_and(|digit| digit % 2 == 1);
        let up = match rounding {
            Rounding::Ceil => !self.is_negative,
            Rounding::Floor => self.is_negative,
            Rounding::Expand => true,
            Rounding::Trunc => false,
            Rounding::HalfCeil => half.is_gt() || half.is_eq() && !self.is_negative,
            Rounding::HalfFloor => half.is_gt() || half.is_eq() && self.is_negative,
            Rounding::HalfExpand => half.is_ge(),
            Rounding::HalfTrunc => half.is_gt(),
            Rounding::HalfEven => half.is_gt() || half.is_eq() && is_odd,
        };
        if kept < 0 {
            self.digits.clear();
            // The one unit that is left stands in the last kept place.
            self.point -= kept;
        }
        if up {
            self.bump();
        }
        self.trim();
    }

    /// One unit more in the last place.
    fn bump(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self.point += 1;
    }

    /// The digits before the point, at least one, and those behind it.
    pub(super) fn split(&self) -> (String, String) {
        let digit = |place: i64| {
            let digit = usize::try_from(place)
                .ok()
                .and_then(|place| self.digits.get(place));
            char::from(b'0' + digit.copied().unwrap_or(0))
        };
        let length = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        let whole: String = match self.point > 0 {
            true => (0..self.point).map(digit).collect(),
            false => "0".to_owned(),
        };
        let fraction = (self.point.min(length)..length).map(digit);
        let zeros = usize::try_from(-self.point).unwrap_or(0);
        let fraction = match self.point < 0 {
            true => "0".repeat(zeros) + &(0..length).map(digit).collect::<String>(),
            false => fraction.collect(),
        };
        (whole, fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, fraction: usize, expected: &str) {
        let mut decimal = Decimal::parse(text).unwrap();
        decimal.round_fraction(fraction, Rounding::HalfExpand);
        let (whole, rest) = decimal.split();
        let sign = if decimal.is_negative { "-" } else { "" };
        let point = if rest.is_empty() { "" } else { "." };
        assert_eq!(
            format!("{sign}{whole}{point}{rest}"),
            expected,
            "{text} to {fraction}"
        );
    }

    #[test]
    fn halves_go_away_from_nought() {
        check("1.005", 2, "1.01");
        check("0.5", 0, "1");
        check("-0.5", 0, "-1");
        check("0.05", 0, "0");
        check("0.049", 1, "0");
        check("0.05", 1, "0.1");
        check("999.999", 2, "1000");
        check("1e21", 2, "1000000000000000000000");
        check("1.5e-7", 3, "0");
        check("1.5e-7", 7, "0.0000002");
        check("123.456", 5, "123.456");
    }
}
