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
                    // An empty pair of quotes is a word, too.
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
        // `''` is a word, and no command.
        Some(first) if first.is_empty() => Err(CommandFault::Empty),
        // `A=b command`: the shell runs `command`.
        Some(first) if first.contains('=') => Err(CommandFault::Assignment),
        Some(_) => Ok(words),
    }
}

/// Commands of git that start a program their arguments name.
const GIT_STARTERS: [&str; 31] = [
    "archimport",
    "archive",
    "bisect",
    "citool",
    "clone",
    "config",
    "credential",
    "cvsexportcommit",
    "cvsimport",
    "cvsserver",
    "daemon",
    "difftool",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "for-each-repo",
    "gui",
    "hook",
    "imap-send",
    "instaweb",
    "merge-index",
    "mergetool",
    "p4",
    "pull",
    "quiltimport",
    "rebase",
    "send-email",
    "send-pack",
    "shell",
    "submodule",
    "svn",
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
            // The one option that is common and harmless.
            let next = rest.find(|word| *word != "--no-pager")?;
            let is_plain = matches!(next, "--version" | "--help");
            if !is_plain && (next.starts_with('-') || is_git_starter(next)) {
                return Some(next);
            }
            rest.find(|word| match next {
                "grep" => has_letter(word, 'O') || may_mean(word, "--open-files-in-pager"),
                "push" | "ls-remote" => {
                    let mut options = ["--exec", "--receive-pack", "--upload-pack"].iter();
                    options.any(|option| may_mean(word, option))
                }
                // An option of its own, though textconv begins like it.
                _ if *word == "--text" => false,
                _ => may_mean(word, "--ext-diff") || may_mean(word, "--textconv"),
            })
        }
        "sort" => rest.find(|word| may_mean(word, "--compress-program")),
        _ => None,
    }
}

/// Whether a command of git starts what its arguments name. `remote-ext` and the like are
/// what git itself runs to reach a repository, `difftool--helper` and the like are parts of
/// other commands.
fn is_git_starter(command: &str) -> bool {
    GIT_STARTERS.contains(&command) || command.starts_with("remote-") || command.contains("--")
}

/// Whether a word may have this option of one letter, alone or among others: `-nOless`. The
/// letter may as well be in the value of another one; that is not told apart, so that no list
/// of options with values has to be complete.
fn has_letter(word: &str, letter: char) -> bool {
    let letters = word.strip_prefix('-');
    letters.is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

/// Whether a word may mean a long option: programs take any beginning of one. They refuse a
/// beginning that fits several, and which those are depends on their version.
fn may_mean(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let is_long = name.len() > "--".len() && name.starts_with("--");
    is_long && (option.starts_with(name) || name.starts_with(option))
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
            ("sort -nS1 --co sh x", Some("--co")),
            // Letters after one dash are so many options.
            ("git grep -nOsh x", Some("-nOsh")),
            ("git grep -On x", Some("-On")),
            ("git grep -inO x", Some("-inO")),
            ("git grep x -lOsh", Some("-lOsh")),
            ("git -calias.x='!sh' x", Some("-calias.x=!sh")),
            // Git takes any beginning of a long option that fits one alone.
            ("git grep --op=sh x", Some("--op=sh")),
            (
                "git grep --open-files-in-pag=sh x",
                Some("--open-files-in-pag=sh"),
            ),
            ("git ls-remote --upload-p=sh x", Some("--upload-p=sh")),
            ("git ls-remote --up sh x", Some("--up")),
            ("git ls-remote --exe=sh x", Some("--exe=sh")),
            ("git push --e=sh x", Some("--e=sh")),
            ("git push --rece=sh x", Some("--rece=sh")),
            ("git log --ext", Some("--ext")),
            ("git show --textc", Some("--textc")),
            // The commands below those people type take programs as well.
            ("git fetch-pack --exec=sh x", Some("fetch-pack")),
            ("git merge-index sh -a", Some("merge-index")),
            ("git remote-ext x 'sh -c y'", Some("remote-ext")),
            ("git send-email --to-cmd=sh x", Some("send-email")),
            ("git submodule--helper foreach x", Some("submodule--helper")),
            ("sort --check x", None),
            ("git diff --text", None),
            ("git grep -n -e x", None),
            ("git push --repo=x", None),
            ("git log -Ofile", None),
            ("git", None),
            ("git --version", None),
            ("git --no-pager log -c", None),
            ("git remote -v", None),
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
