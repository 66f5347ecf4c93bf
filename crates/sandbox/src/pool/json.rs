//! Whether a worker's result is JSON that the rest of the program can read.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The deepest result that is handed on, whatever a job allows: the JSON reader
/// of this program gives up a little beyond it.
pub const RESULT_DEPTH_MAX: u32 = 120;

/// Reads `json` to its end and keeps nothing. Every string is decoded on the
/// way, because a text that only looks like JSON would fail its next reader.
pub(super) fn check(json: &str, depth_max: u32) -> Result<(), Refused> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let level = Level {
        // A job's own bound may be higher than what `serde_json` reads later. Then the
        // lower one holds, or a result that passed here would fail further on.
        left: depth_max.min(RESULT_DEPTH_MAX),
    };
    // `end` refuses text after the value, which a second reader could take for the result.
    match level.deserialize(&mut reader).and_then(|()| reader.end()) {
        Ok(()) => Ok(()),
        // Our own `too deep` is the only data error: every kind of value is
        // accepted above it.
        Err(error) if error.is_data() => Err(Refused::TooDeep),
        Err(_) => Err(Refused::NotJson),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    NotJson,
    TooDeep,
}

/// How many lists and objects may still be opened.
#[derive(Clone, Copy)]
struct Level {
    left: u32,
}

impl Level {
    fn down<E: de::Error>(self) -> Result<Level, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Level { left }),
            None => Err(E::custom("too deep")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let inner = self.down()?;
        while list.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let inner = self.down()?;
        // A key is a string; it only has to decode.
        while map.next_key_seed(inner)?.is_some() {
            map.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Refused, check};

    #[track_caller]
    fn expect(json: &str, depth_max: u32, expected: Result<(), Refused>) {
        assert_eq!(check(json, depth_max), expected, "{json:?}");
    }

    #[test]
    fn json_is_accepted() {
        for json in [
            "null",
            "-0.5e3",
            "18446744073709551615",
            r#""\ud83d\ude00""#,
            " [] ",
            "{}",
        ] {
            expect(json, 1, Ok(()));
        }
        expect(r#"{"a":[{"b":true}]}"#, 3, Ok(()));
        expect("7", 0, Ok(()));
    }

    #[test]
    fn almost_json_is_refused() {
        for json in [
            "",
            "undefined",
            "nul",
            "[1,]",
            "{a:1}",
            "1 2",
            r#""\ud800""#,
            "1e999",
            "\"\n\"",
            "01",
        ] {
            expect(json, 9, Err(Refused::NotJson));
        }
        expect(r#"{"\udc00":1}"#, 9, Err(Refused::NotJson));
    }

    #[test]
    fn depth_is_bounded() {
        expect("[[]]", 1, Err(Refused::TooDeep));
        expect(r#"{"a":{"b":1}}"#, 1, Err(Refused::TooDeep));
        let deep = "[".repeat(100_000);
        expect(&deep, u32::MAX, Err(Refused::TooDeep));
    }
}
