//! How strict the guard is: limits of the raw text and rules of the tree.
//!
//! Five presets. `STRICT` to `PERMISSIVE` judge JavaScript at large; `AgentScript` is
//! the language of scripts that call tools, in four levels. Mandatory caps apply to
//! every preset.

pub(crate) mod name;

pub(crate) use name::{GLOBAL_OBJECTS, is_dangerous_key, is_meta_method};
pub use name::{RESERVED_PREFIXES, RUNTIME_FUNCTIONS};

/// How much a script is trusted, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PresetLevel {
    /// `locked_down`.
    Strict,
    /// `secure`, the default.
    Secure,
    /// `balanced`.
    Standard,
    /// `experimental`.
    Permissive,
}

impl PresetLevel {
    /// The level of an operator's preset.
    #[must_use]
    pub fn named(raw_name: &str) -> Option<PresetLevel> {
        match raw_name {
            "locked_down" => Some(PresetLevel::Strict),
            "secure" => Some(PresetLevel::Secure),
            "balanced" => Some(PresetLevel::Standard),
            "experimental" => Some(PresetLevel::Permissive),
            _ => None,
        }
    }
}

/// Bounds of the raw text. The values of a preset are capped by [`CAPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetLimits {
    /// The whole script.
    pub input_bytes_max: usize,
    /// One line.
    pub line_chars_max: usize,
    /// All lines.
    pub lines_max: usize,
    /// Brackets inside each other.
    pub nesting_max: usize,
    /// Operators side by side.
    pub operator_run_max: usize,
    /// One regular expression.
    pub regex_chars_max: usize,
    /// All regular expressions.
    pub regex_count_max: usize,
    /// One string.
    pub string_chars_max: usize,
    /// All strings.
    pub strings_chars_max: usize,
}

/// Caps that no preset and no configuration lifts.
pub const CAPS: PresetLimits = PresetLimits {
    input_bytes_max: 100 * 1024 * 1024,
    line_chars_max: 100_000,
    lines_max: 1_000_000,
    nesting_max: 200,
    operator_run_max: 50,
    regex_chars_max: 1_000,
    regex_count_max: 50,
    string_chars_max: 5 * 1024 * 1024,
    strings_chars_max: 50 * 1024 * 1024,
};

impl PresetLimits {
    /// These limits, none above its cap.
    #[must_use]
    pub fn capped(self) -> PresetLimits {
        PresetLimits {
            input_bytes_max: self.input_bytes_max.min(CAPS.input_bytes_max),
            line_chars_max: self.line_chars_max.min(CAPS.line_chars_max),
            lines_max: self.lines_max.min(CAPS.lines_max),
            nesting_max: self.nesting_max.min(CAPS.nesting_max),
            operator_run_max: self.operator_run_max.min(CAPS.operator_run_max),
            regex_chars_max: self.regex_chars_max.min(CAPS.regex_chars_max),
            regex_count_max: self.regex_count_max.min(CAPS.regex_count_max),
            string_chars_max: self.string_chars_max.min(CAPS.string_chars_max),
            strings_chars_max: self.strings_chars_max.min(CAPS.strings_chars_max),
        }
    }
}

/// Which regular expression literals are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegexMode {
    /// None.
    Block,
    /// Those that cannot take exponential time.
    Exponential,
    /// Those that cannot take exponential time; a warning for polynomial time.
    Polynomial,
    /// All that are short enough.
    Allow,
}

/// Which hidden characters are looked for in the raw text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unicode {
    /// Letters that look like others, in names.
    pub homographs: bool,
    /// Controls and marks of direction, anywhere.
    pub bidi: bool,
    /// Characters without width.
    pub invisible: bool,
}

/// Which loops a script may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loops {
    /// `for`
    pub plain: bool,
    /// `for … of`
    pub of: bool,
    /// `for … in`
    pub r#in: bool,
    /// `while` and `do … while`
    pub r#while: bool,
}

/// Which functions a script may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// None, not even arrows.
    None,
    /// Arrows only.
    Arrows,
    /// All, classes too.
    All,
}

/// How the tool of a call must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// The preset does not know tools.
    Unchecked,
    /// As a string in the call.
    Literal,
    /// Any expression.
    Any,
}

/// Names a script may use without declaring them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Globals {
    /// Every name but the refused ones.
    Any,
    /// These, and [`Preset::extra_globals`].
    Only(Vec<&'static str>),
}

/// A requirement for the calls of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallWish {
    /// The function.
    pub function: String,
    /// Calls the script must have.
    pub calls_min: usize,
    /// Calls the script may have.
    pub calls_max: usize,
    /// Arguments of each call, at least.
    pub arguments_min: usize,
    /// Arguments of each call, at most.
    pub arguments_max: usize,
    /// The kind of each argument, as far as it is visible.
    pub kinds: Vec<ArgumentKind>,
}

/// The visible kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Anything.
    Any,
    /// Text.
    String,
    /// A number.
    Number,
    /// An object.
    Object,
    /// An array.
    Array,
    /// A function.
    Function,
}

/// How strict the guard is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name, for messages.
    pub name: &'static str,
    /// Bounds of the raw text, before [`PresetLimits::capped`].
    pub limits: PresetLimits,
    /// Regular expressions.
    pub regex: RegexMode,
    /// Hidden characters in the raw text.
    pub unicode: Unicode,
    /// Names that need no declaration.
    pub globals: Globals,
    /// Further names that can be used, such as the namespaces of tools. They are the
    /// runtime's, so the rewriting gives them their safe names.
    pub extra_globals: Vec<String>,
    /// Names that are refused.
    pub refused: Vec<&'static str>,
    /// Loops.
    pub loops: Loops,
    /// Functions.
    pub functions: Functions,
    /// `async` and `await`.
    pub is_async: bool,
    /// Tool names.
    pub targets: Targets,
    /// The tools a script may call, each a name or a pattern with `*`; `None` if
    /// the guard need not know.
    pub tools: Option<Vec<String>>,
    /// The language of scripts: keys, destructuring, reserved names, callbacks of
    /// JSON, wasteful constants and names with hidden characters are looked at.
    pub is_agent_script: bool,
    /// Requirements for calls.
    pub calls: Vec<CallWish>,
}

impl Preset {
    /// The language of scripts that call tools, at one level.
    #[must_use]
    pub fn agent_script(level: PresetLevel) -> Preset {
        let regex = match level {
            PresetLevel::Strict | PresetLevel::Secure => RegexMode::Block,
            PresetLevel::Standard => RegexMode::Polynomial,
            PresetLevel::Permissive => RegexMode::Allow,
        };
        let targets = match level {
            PresetLevel::Strict | PresetLevel::Secure => Targets::Literal,
            PresetLevel::Standard | PresetLevel::Permissive => Targets::Any,
        };
        Preset {
            name: "AgentScript",
            limits: PresetLimits {
                input_bytes_max: 50 * 1024,
                line_chars_max: 2_000,
                lines_max: 1_000,
                nesting_max: 30,
                operator_run_max: 5,
                regex_chars_max: 500,
                regex_count_max: 30,
                string_chars_max: 10 * 1024,
                strings_chars_max: 100 * 1024,
            },
            regex,
            unicode: Unicode {
                homographs: true,
                bidi: true,
                invisible: true,
            },
            globals: Globals::Only(name::agent_script_globals(level)),
            extra_globals: Vec::new(),
            refused: name::AGENT_SCRIPT.to_vec(),
            loops: Loops {
                plain: true,
                of: true,
                r#in: false,
                r#while: false,
            },
            functions: Functions::Arrows,
            is_async: true,
            targets,
            tools: None,
            is_agent_script: true,
            calls: Vec::new(),
        }
    }

    /// No loops, no async, hardly a global; short patterns.
    #[must_use]
    pub fn strict() -> Preset {
        Preset {
            name: "STRICT",
            limits: limits(500 << 10, 5_000, 2_000, 30, 10, (100, 10), 50 << 10),
            regex: RegexMode::Exponential,
            unicode: Unicode {
                homographs: true,
                bidi: true,
                invisible: true,
            },
            refused: name::strict(),
            loops: Loops {
                plain: false,
                of: false,
                r#in: false,
                r#while: false,
            },
            is_async: false,
            ..Preset::permissive()
        }
    }

    /// `for`, `for … of` and `await`; no powers of a host.
    #[must_use]
    pub fn secure() -> Preset {
        Preset {
            name: "SECURE",
            limits: limits(1 << 20, 8_000, 5_000, 40, 15, (200, 20), 100 << 10),
            regex: RegexMode::Exponential,
            unicode: Unicode {
                homographs: true,
                bidi: true,
                invisible: false,
            },
            refused: name::SECURE.to_vec(),
            loops: Loops {
                plain: true,
                of: true,
                r#in: false,
                r#while: false,
            },
            ..Preset::permissive()
        }
    }

    /// Ordinary JavaScript without `eval`, `Function`, `process`, `require`.
    #[must_use]
    pub fn standard() -> Preset {
        Preset {
            name: "STANDARD",
            limits: limits(5 << 20, 10_000, 10_000, 50, 20, (500, 30), 500 << 10),
            regex: RegexMode::Polynomial,
            unicode: Unicode {
                homographs: true,
                bidi: false,
                invisible: false,
            },
            refused: vec!["eval", "Function", "process", "require"],
            loops: Loops {
                plain: true,
                of: true,
                r#in: true,
                r#while: false,
            },
            ..Preset::permissive()
        }
    }

    /// Everything but `eval`.
    #[must_use]
    pub fn permissive() -> Preset {
        Preset {
            name: "PERMISSIVE",
            limits: limits(10 << 20, 50_000, 100_000, 100, 50, (1_000, 50), 1 << 20),
            regex: RegexMode::Allow,
            unicode: Unicode {
                homographs: false,
                bidi: false,
                invisible: false,
            },
            globals: Globals::Any,
            extra_globals: Vec::new(),
            refused: vec!["eval"],
            loops: Loops {
                plain: true,
                of: true,
                r#in: true,
                r#while: true,
            },
            functions: Functions::All,
            is_async: true,
            targets: Targets::Unchecked,
            tools: None,
            is_agent_script: false,
            calls: Vec::new(),
        }
    }
}

/// The limits of a preset for JavaScript at large: all strings may be as long as
/// the input.
fn limits(
    input_bytes_max: usize,
    line_chars_max: usize,
    lines_max: usize,
    nesting_max: usize,
    operator_run_max: usize,
    regex: (usize, usize),
    string_chars_max: usize,
) -> PresetLimits {
    PresetLimits {
        input_bytes_max,
        line_chars_max,
        lines_max,
        nesting_max,
        operator_run_max,
        regex_chars_max: regex.0,
        regex_count_max: regex.1,
        string_chars_max,
        strings_chars_max: input_bytes_max,
    }
}
