//! A command line as a POSIX shell splits it, where it is one plain command: words and
//! quotes. Everything a shell would expand, or start another command with, is refused
//! with the place, so the command compared with a list is the command the shell would
//! run.

/// Why a command line is not one plain command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandFault {
    /// It holds no word.
    #[error("it is empty")]
    Empty,
    /// A character that a shell does not take as text.
    #[error("`{mark}` at character {place} is not plain text to a shell; quote it with '…'")]
    Mark {
        /// The character.
        mark: char,
        /// Where, counted from 1.
        place: usize,
    },
    /// A quote without its end.
    #[error("the quote at character {place} is not closed")]
    Unclosed {
        /// Where it opens, counted from 1.
        place: usize,
    },
    /// A variable set for the command.
    #[error("it sets a variable before the command")]
    Assignment,
}

/// Characters that start another command, redirect, or are expanded.
const MARKS: [char; 18] = [
    ';', '&', '|', '<', '>', '`', '$', '(', ')', '{', '}', '\n', '\r', '\\', '*', '?', '!', '[',
];

/// The words of one plain command.
pub fn words(line: &str) -> Result<Vec<String>, CommandFault> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<(char, usize)> = None;
    for (index, character) in line.chars().enumerate() {
        let place = index + 1;
        let mark = CommandFault::Mark {
            mark: character,
            place,
        };
        match quote {
            Some((open, _)) if character == open => quote = None,
            // Between single quotes every character is literal.
            Some(('\'', _)) => word.get_or_insert_default().push(character),
            Some(_) => match character {
                '$' | '`' | '\\' | '!' => return Err(mark),
                _ => word.get_or_insert_default().push(character),
            },
            None => match character {
                '\'' | '"' => {
                    word.get_or_insert_default();
                    quote = Some((character, place));
                }
                ' ' | '\t' => words.extend(word.take()),
                // At the start of a word these are a home folder and a comment.
                '~' | '#' if word.is_none() => return Err(mark),
                _ if MARKS.contains(&character) || is_unseen(character) => return Err(mark),
                _ => word.get_or_insert_default().push(character),
            },
        }
    }
    if let Some((_, place)) = quote {
        return Err(CommandFault::Unclosed { place });
    }
    words.extend(word);
    match words.first() {
        None => Err(CommandFault::Empty),
        Some(first) if first.is_empty() => Err(CommandFault::Empty),
        // `A=b command`: the shell runs `command`.
        Some(first) if first.contains('=') => Err(CommandFault::Assignment),
        Some(_) => Ok(words),
    }
}

/// Commands of git that start a program their arguments name.
const GIT_STARTERS: [&str; 11] = [
    "archive",
    "bisect",
    "clone",
    "config",
    "difftool",
    "fetch",
    "filter-branch",
    "mergetool",
    "pull",
    "rebase",
    "submodule",
];

/// The word by which a command that is often listed would start another one. A list of
/// commands says what a caller is for; what a command can reach is the jail's business.
#[must_use]
pub fn starter(words: &[String]) -> Option<&str> {
    let (first, rest) = words.split_first()?;
    let mut rest = rest.iter().map(String::as_str);
    match first.as_str() {
        // Options before the command set whatever git runs.
        "git" => {
            let next = rest.find(|word| *word != "--no-pager")?;
            let is_plain = matches!(next, "--version" | "--help");
            let is_option = next.starts_with('-') && !is_plain;
            if is_option || GIT_STARTERS.contains(&next) {
                return Some(next);
            }
            rest.find(|word| match next {
                "grep" => word.starts_with("-O") || word.starts_with("--open"),
                "push" | "ls-remote" => {
                    word.starts_with("--exec")
                        || word.starts_with("--receive")
                        || word.starts_with("--upload")
                }
                _ => word.starts_with("--ext-diff") || word.starts_with("--textconv"),
            })
        }
        // Any beginning of a long option will do.
        "sort" => rest.find(|word| word.starts_with("--co")),
        _ => None,
    }
}

/// A character that a reader of the line does not see as it is.
fn is_unseen(character: char) -> bool {
    character.is_control() || crate::text::is_hidden(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> CommandFault {
        words(line).expect_err(line)
    }

    #[test]
    fn plain_commands_are_split_as_a_shell_splits_them() {
        for (line, expected) in [
            ("ls", vec!["ls"]),
            ("  git   status ", vec!["git", "status"]),
            (
                "grep 'a;b|c $d' \"x y\" z",
                vec!["grep", "a;b|c $d", "x y", "z"],
            ),
            ("l's' a\"b\"'c'", vec!["ls", "abc"]),
            ("grep ''", vec!["grep", ""]),
            ("cat a~b a#b", vec!["cat", "a~b", "a#b"]),
        ] {
            assert_eq!(words(line).expect(line), expected, "{line}");
        }
    }

    #[test]
    fn what_starts_another_command_is_found() {
        for (line, expected) in [
            ("git -c alias.x='!sh' x", Some("-c")),
            ("git --no-pager -c a=b log", Some("-c")),
            ("git --exec-path=/tmp log", Some("--exec-path=/tmp")),
            ("git config core.pager sh", Some("config")),
            ("git submodule foreach 'touch x'", Some("submodule")),
            ("git grep -Osh x", Some("-Osh")),
            ("git log --ext-diff", Some("--ext-diff")),
            ("sort --compress-prog=sh x", Some("--compress-prog=sh")),
            ("git", None),
            ("git --version", None),
            ("git --no-pager log -c", None),
            ("git diff HEAD -- config", None),
            ("sort -r x", None),
            ("ls --color", None),
        ] {
            let words = words(line).expect(line);
            assert_eq!(starter(&words), expected, "{line}");
        }
    }

    #[test]
    fn whatever_a_shell_would_not_take_as_text_is_refused() {
        for line in [
            "ls; rm x",
            "ls & rm x",
            "ls | sh",
            "ls > x",
            "cat < x",
            "ls `rm x`",
            "ls $(rm x)",
            "ls \"$(rm x)\"",
            "ls \"`rm x`\"",
            "ls $HOME",
            "ls {a,b}",
            "ls *",
            "ls ?",
            "ls [a]",
            "ls \\\nrm x",
            "ls\nrm x",
            "ls\rrm x",
            "~/evil",
            "ls ~",
            "#x",
            "ls #x",
            "! ls",
            "ls\u{200b}",
            "ls \u{7}",
        ] {
            assert!(matches!(fault(line), CommandFault::Mark { .. }), "{line:?}");
        }
        assert_eq!(fault("ls 'a"), CommandFault::Unclosed { place: 4 });
        assert_eq!(fault("ls \"a"), CommandFault::Unclosed { place: 4 });
        assert_eq!(fault("LD_PRELOAD=x ls"), CommandFault::Assignment);
        assert_eq!(fault(" \t"), CommandFault::Empty);
        assert_eq!(fault("'' ls"), CommandFault::Empty);
    }
}
