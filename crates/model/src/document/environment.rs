//! The variables that are set, passed in by code that may read them.

use std::collections::BTreeMap;

/// A reading of the environment. `model` never takes one itself.
#[derive(Clone, Default)]
pub struct Environment {
    values: BTreeMap<String, String>,
}

/// Names only: the values are secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Environment {
    /// An environment with nothing set.
    #[must_use]
    pub fn empty() -> Environment {
        Environment::default()
    }

    /// Sets a variable; a later value wins.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.values.insert(name.into(), value.into());
    }

    /// The value, unless it is unset, empty or blank: the three mean the same.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.trim().is_empty())
    }

    /// The names of all that are set.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.values.keys().map(String::as_str);
        names.filter(|name| self.get(name).is_some())
    }
}

impl Environment {
    /// This environment over another: variables that are unset or blank here come from
    /// the other.
    #[must_use]
    pub fn over(&self, below: &Environment) -> Environment {
        let mut merged = below.clone();
        for name in self.values.keys() {
            if let Some(value) = self.get(name) {
                merged.set(name, value);
            }
        }
        merged
    }

    /// Reads `NAME=value` lines into this environment: blank lines and `#` lines
    /// are skipped, `export ` may lead, quotes around a whole value are taken off.
    /// Returns the first line that is neither, counted from 1, having set nothing.
    pub fn read_lines(&mut self, text: &str) -> Result<(), usize> {
        let mut pairs = Vec::new();
        for (index, raw_line) in text.lines().enumerate() {
            let line = raw_line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line.split_once('=').ok_or(index + 1)?;
            let name = name.trim();
            let named =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !named {
                return Err(index + 1);
            }
            pairs.push((name, unquoted(value.trim())));
        }
        for (name, value) in pairs {
            self.set(name, value);
        }
        Ok(())
    }
}

fn unquoted(value: &str) -> &str {
    let inside = |quote| {
        value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Environment {
        let mut environment = Environment::empty();
        for (name, value) in pairs {
            environment.set(name, value);
        }
        environment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let mut environment = Environment::empty();
        let text = "# keys\n\nA=1\nexport B = \"two words\" \nC='x=y'\nD=\n";
        assert_eq!(environment.read_lines(text), Ok(()));
        let get = |name| environment.get(name);
        assert_eq!(
            (get("A"), get("B"), get("C"), get("D")),
            (Some("1"), Some("two words"), Some("x=y"), None)
        );
    }

    #[test]
    fn blank_variables_come_from_the_lower_environment() {
        let above: Environment = [("A", "1"), ("B", " ")].into_iter().collect();
        let below: Environment = [("A", "x"), ("B", "2"), ("C", "3")].into_iter().collect();
        let merged = above.over(&below);
        let get = |name| merged.get(name);
        assert_eq!(
            (get("A"), get("B"), get("C"), get("D")),
            (Some("1"), Some("2"), Some("3"), None)
        );
    }

    #[test]
    fn a_bad_line_is_named_and_nothing_is_set() {
        let mut environment = Environment::empty();
        assert_eq!(environment.read_lines("A=1\nnot a pair"), Err(2));
        assert_eq!(environment.read_lines("=1"), Err(1));
        assert_eq!(environment.get("A"), None);
    }
}
