//! Completions of the word before the cursor: commands, flags, the words a flag takes,
//! and which names of the home. It reads the declared command line, so it knows
//! whatever the parser knows; it opens nothing.

use std::path::PathBuf;

use clap::{Arg, Args, Command, CommandFactory as _};

use super::CommandLine;

#[derive(Debug, Args)]
pub(crate) struct CompleteArguments {
    /// The words after the program's name, up to the cursor
    #[arg(
        value_name = "WORD",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<String>,
}

/// Names that the home knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletedName {
    Tool,
    Caller,
    Rule,
    Server,
}

impl CompletedName {
    /// The kind that an argument takes, by the word that help shows for its value.
    fn of(argument: &Arg) -> Option<CompletedName> {
        let names = argument.get_value_names().unwrap_or_default();
        let mut words = names.iter().flat_map(|name| name.split('|'));
        words.find_map(|word| match word {
            "TOOL" => Some(CompletedName::Tool),
            "CALLER" => Some(CompletedName::Caller),
            "RULE" => Some(CompletedName::Rule),
            "SERVER" => Some(CompletedName::Server),
            _ => None,
        })
    }
}

/// A word that fits, and what it means.
pub(crate) type Offer = (String, String);

/// The completions of the last word.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sought {
    /// The part that was typed.
    pub(crate) begin: String,
    /// The part before it in the same word: `--tool=`.
    pub(crate) before: String,
    /// Words that need no home.
    pub(crate) offers: Vec<Offer>,
    /// Names of the home that fit here.
    pub(crate) names: Option<CompletedName>,
    /// The home that the line names.
    pub(crate) home: Option<PathBuf>,
}

/// Reads the words up to the cursor.
pub(crate) fn sought(words: &[String]) -> Sought {
    let mut root = CommandLine::command();
    root.build();
    let mut reading = Reading {
        command: &root,
        position: 0,
        expects: None,
        is_plain: false,
        home: None,
    };
    let Some((last, before)) = words.split_last() else {
        return Sought::default();
    };
    before.iter().for_each(|word| reading.take(word));
    reading.finish(last)
}

/// How far the line was read.
struct Reading<'a> {
    command: &'a Command,
    /// How many values without a flag there were.
    position: usize,
    /// The flag whose value comes next.
    expects: Option<&'a Arg>,
    /// After `--` nothing is a flag.
    is_plain: bool,
    home: Option<PathBuf>,
}

impl<'a> Reading<'a> {
    fn take(&mut self, word: &str) {
        if let Some(argument) = self.expects {
            // Bash makes `--home=x` three words.
            if word != "=" {
                self.note_home(argument, word);
                self.expects = None;
            }
        } else if self.is_plain {
            self.position += 1;
        } else if word == "--" {
            self.is_plain = true;
        } else if let Some((flag, value)) = word.split_once('=').filter(|_| word.starts_with("--"))
        {
            if let Some(argument) = self.flag(flag) {
                self.note_home(argument, value);
            }
        } else if word.starts_with('-') && word != "-" {
            self.expects = self.flag(word).filter(|found| takes_value(found));
        } else if let Some(below) = self.below(word) {
            self.command = below;
            self.position = 0;
        } else {
            self.position += 1;
        }
    }

    fn finish(self, last: &str) -> Sought {
        let mut sought = Sought {
            begin: last.to_owned(),
            home: self.home.clone(),
            ..Sought::default()
        };
        if let Some(argument) = self.expects {
            if last == "=" {
                sought.begin.clear();
            }
            sought.take_values(argument);
        } else if let Some((flag, value)) = last.split_once('=').filter(|_| last.starts_with("--"))
        {
            sought.begin = value.to_owned();
            sought.before = format!("{flag}=");
            if let Some(argument) = self.flag(flag) {
                sought.take_values(argument);
            }
        } else if last.starts_with('-') && !self.is_plain {
            sought.offers.extend(self.flags());
        } else {
            if self.position == 0 && !self.is_plain {
                sought.offers.extend(self.commands());
            }
            if let Some(argument) = self.positional() {
                sought.take_values(argument);
            }
        }
        let begin = &sought.begin;
        sought.offers.retain(|(word, _)| word.starts_with(begin));
        sought
    }

    fn flag(&self, word: &str) -> Option<&'a Arg> {
        let mut flags = self.command.get_arguments();
        match word.strip_prefix("--") {
            Some(long) => flags.find(|found| found.get_long() == Some(long)),
            None => {
                let short = word.chars().nth(1).filter(|_| word.chars().count() == 2)?;
                flags.find(|found| found.get_short() == Some(short))
            }
        }
    }

    fn below(&self, word: &str) -> Option<&'a Command> {
        let below = self.command.find_subcommand(word)?;
        (self.position == 0 && is_shown(below)).then_some(below)
    }

    fn positional(&self) -> Option<&'a Arg> {
        let mut all = self.command.get_positionals();
        let several = |argument: &&Arg| {
            let count = argument.get_num_args();
            count.is_some_and(|count| count.max_values() > 1)
        };
        let own = all.nth(self.position);
        // The last one may take several.
        own.or_else(|| self.command.get_positionals().last().filter(several))
    }

    fn flags(&self) -> impl Iterator<Item = Offer> {
        let flags = self.command.get_arguments();
        let flags = flags.filter(|flag| !flag.is_hide_set());
        flags.filter_map(|flag| {
            let help = flag.get_help().map(ToString::to_string);
            Some((format!("--{}", flag.get_long()?), help.unwrap_or_default()))
        })
    }

    fn commands(&self) -> impl Iterator<Item = Offer> {
        let below = self.command.get_subcommands();
        below.filter(|below| is_shown(below)).map(|below| {
            let about = below.get_about().map(ToString::to_string);
            (below.get_name().to_owned(), about.unwrap_or_default())
        })
    }

    fn note_home(&mut self, argument: &Arg, value: &str) {
        if argument.get_long() == Some("home") {
            self.home = Some(PathBuf::from(value));
        }
    }
}

impl Sought {
    /// Adds the values of an argument.
    fn take_values(&mut self, argument: &Arg) {
        let values = argument.get_possible_values().into_iter();
        let values = values.filter(|value| takes_value(argument) && !value.is_hide_set());
        self.offers.extend(values.map(|value| {
            let help = value.get_help().map(ToString::to_string);
            (value.get_name().to_owned(), help.unwrap_or_default())
        }));
        self.names = CompletedName::of(argument);
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// `build` adds a `help` to every group.
fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sought_in(line: &str) -> Sought {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        sought(&words)
    }

    #[track_caller]
    fn offers(line: &str, expected: &[&str]) {
        let found = sought_in(line);
        let words: Vec<_> = found.offers.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(words, expected, "{line}");
    }

    #[test]
    fn commands_flags_and_their_words_are_offered() {
        offers("ser", &["serve", "servers"]);
        offers("audit ver", &["verify"]);
        offers("compl", &["completions"]);
        offers("audit list --sta", &["--status"]);
        offers("audit list --status re", &["refused"]);
        offers("audit list --status=re", &["refused"]);
        offers("audit list --status = re", &["refused"]);
        offers("connect --http cu", &["cursor"]);
        offers("test -- --off", &[]);
        offers("export -o --js", &[]);
        assert_eq!(sought_in("audit list --status=re").before, "--status=");
    }

    #[test]
    fn names_are_of_the_kind_that_help_shows() {
        for (line, expected) in [
            ("run cou", Some(CompletedName::Tool)),
            ("publish a b cou", Some(CompletedName::Tool)),
            ("audit list --tool ", Some(CompletedName::Tool)),
            ("audit list --caller=c", Some(CompletedName::Caller)),
            ("keys revoke ", Some(CompletedName::Caller)),
            ("keys add ", None),
            ("new ", None),
            ("policy show ", Some(CompletedName::Rule)),
            ("policy show --caller ", Some(CompletedName::Caller)),
            ("secrets grant ", Some(CompletedName::Tool)),
            ("secrets grant a ", None),
            ("servers accept ", Some(CompletedName::Server)),
            ("servers add ", None),
        ] {
            assert_eq!(sought_in(line).names, expected, "{line}");
        }
    }

    #[test]
    fn the_home_of_the_line_counts() {
        for line in [
            "run --home there x",
            "run --home=there x",
            "run --home = there x",
        ] {
            assert_eq!(sought_in(line).home, Some(PathBuf::from("there")), "{line}");
        }
        assert_eq!(sought_in("run --home ").home, None);
    }
}
