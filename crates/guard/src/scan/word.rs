//! What a word means to the pass over the raw text.

/// What may follow a word, and whether it makes the tree deeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// An ordinary name, or a literal such as `null`.
    Name,
    /// `if`, `for`, `with`, `switch`, `catch`: a header follows.
    Header,
    /// `while`: a header follows, of a loop or of a `do`.
    While,
    /// `do`
    Do,
    /// `else`
    Else,
    /// `typeof`, `new`, `await` …: a value follows and stands below.
    Prefix,
    /// `in`, `instanceof`: goes on with the expression before.
    Infix,
    /// `of`, `yield`, `async`: a name in one place, a keyword in another.
    Either,
    /// `return`, `break` …: a value or the end of the statement.
    Ender,
    /// Any other keyword.
    Plain,
}

/// Looks a word up. Escaped keywords are no keywords, so they come out as names.
pub(crate) fn word(text: &str) -> Word {
    if text.len() < 2 || text.len() > 10 {
        return Word::Name;
    }
    match text {
        "if" | "for" | "with" | "switch" | "catch" => Word::Header,
        "while" => Word::While,
        "do" => Word::Do,
        "else" => Word::Else,
        "typeof" | "void" | "delete" | "new" | "await" | "class" | "extends" | "function" => {
            Word::Prefix
        }
        "in" | "instanceof" => Word::Infix,
        "of" | "yield" | "async" => Word::Either,
        "return" | "break" | "continue" | "debugger" => Word::Ender,
        "throw" | "case" | "default" | "try" | "finally" | "import" | "export" | "const"
        | "var" => Word::Plain,
        _ => Word::Name,
    }
}
