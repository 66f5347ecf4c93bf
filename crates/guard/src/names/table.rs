//! Finds a name among many.
//!
//! Attack: a script chooses its names, and could choose ones that a quick hash, which
//! is well known, puts all in one place. A name is therefore looked for in a few
//! places only; if names do not find one there, std's table with its secret hash takes
//! over.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use rustc_hash::FxBuildHasher;

/// Slots a name may be in.
const PLACES_MAX: usize = 32;

/// Names and their values.
#[derive(Debug)]
pub(super) enum Table<'a> {
    /// At most half full; a length that is a power of two.
    Quick(Vec<Option<(&'a str, usize)>>),
    Keyed(HashMap<&'a str, usize>),
}

impl<'a> Table<'a> {
    /// A table of these names. Of two equal names the last wins; `twice` gets both
    /// values, perhaps more than once.
    pub(super) fn new(
        names: impl ExactSizeIterator<Item = (&'a str, usize)> + Clone,
        mut twice: impl FnMut(usize, usize),
    ) -> Table<'a> {
        let length = (names.len() * 2).next_power_of_two();
        let mut slots = vec![None; length];
        for named in names.clone() {
            let mut places = places(named.0, length);
            let free = places.find(|place| {
                let slot = slots.get(*place).copied().flatten();
                slot.is_none_or(|(name, _): (&str, usize)| name == named.0)
            });
            let Some(slot) = free.and_then(|place| slots.get_mut(place)) else {
                return Table::keyed(names, twice);
            };
            if let Some((_, first)) = slot.replace(named) {
                twice(first, named.1);
            }
        }
        Table::Quick(slots)
    }

    fn keyed(
        names: impl Iterator<Item = (&'a str, usize)>,
        mut twice: impl FnMut(usize, usize),
    ) -> Table<'a> {
        let mut table = HashMap::new();
        for (name, meaning) in names {
            if let Some(first) = table.insert(name, meaning) {
                twice(first, meaning);
            }
        }
        Table::Keyed(table)
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        let slots = match self {
            Table::Quick(slots) => slots,
            Table::Keyed(table) => return table.get(name).copied(),
        };
        for place in places(name, slots.len()) {
            let (known, meaning) = slots.get(place).copied().flatten()?;
            if known == name {
                return Some(meaning);
            }
        }
        None
    }
}

/// The slots of a name, in a table whose length is a power of two.
fn places(name: &str, length: usize) -> impl Iterator<Item = usize> + use<> {
    let first = usize::try_from(FxBuildHasher.hash_one(name)).unwrap_or(0);
    let mask = length.saturating_sub(1);
    (0..PLACES_MAX.min(length)).map(move |step| first.wrapping_add(step) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(names: &[String]) -> impl ExactSizeIterator<Item = (&str, usize)> + Clone {
        names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), at))
    }

    #[test]
    fn every_name_is_found_and_no_other() {
        for count in [0, 1, 13, 1_000, 20_000] {
            let names: Vec<_> = (0..count).map(|at| format!("name{at}")).collect();
            let table = Table::new(numbered(&names), |_, _| {});
            for (name, at) in numbered(&names) {
                assert_eq!(table.get(name), Some(at));
            }
            assert_eq!(table.get("other"), None);
        }
    }

    #[test]
    fn the_last_of_two_equal_names_wins() {
        let names = ["a", "b", "a"].map(str::to_owned);
        let mut twice = Vec::new();
        let table = Table::new(numbered(&names), |first, second| {
            twice.push((first, second))
        });
        assert_eq!(table.get("a"), Some(2));
        assert_eq!(twice, [(0, 2)]);
    }

    /// More names than places whose quick hashes end alike.
    #[test]
    fn colliding_names_are_found_by_the_secret_hash() {
        let length = 128;
        let meets = |name: &String| places(name, length).next() == Some(7);
        let names: Vec<_> = (0..)
            .map(|at| format!("n{at}"))
            .filter(meets)
            .take(64)
            .collect();
        let table = Table::new(numbered(&names), |_, _| {});
        assert!(matches!(table, Table::Keyed(_)));
        for (name, at) in numbered(&names) {
            assert_eq!(table.get(name), Some(at));
        }
        assert_eq!(table.get("other"), None);
    }
}
