//! The role of a word in the pass over the raw text.

/// The role of a word: what may follow, and whether the tree gets deeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanWord {
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
    /// `typeof`, `new`, `await` …: a value follows, one level deeper.
    Prefix,
    /// `in`, `instanceof`: continues the expression before.
    Infix,
    /// `of`, `yield`, `async`: a name in one place, a keyword in another.
    Either,
    /// `return`, `break` …: a value or the end of the statement.
    Ender,
    /// Any other keyword.
    Plain,
}

/// Looks a word up. Escaped keywords are no keywords, so they come out as names.
pub(crate) fn word(text: &str) -> ScanWord {
    if text.len() < 2 || text.len() > 10 {
        return ScanWord::Name;
    }
    match text {
        "if" | "for" | "with" | "switch" | "catch" => ScanWord::Header,
        "while" => ScanWord::While,
        "do" => ScanWord::Do,
        "else" => ScanWord::Else,
        "typeof" | "void" | "delete" | "new" | "await" | "class" | "extends" | "function" => {
            ScanWord::Prefix
        }
        "in" | "instanceof" => ScanWord::Infix,
        "of" | "yield" | "async" => ScanWord::Either,
        "return" | "break" | "continue" | "debugger" => ScanWord::Ender,
        "throw" | "case" | "default" | "try" | "finally" | "import" | "export" | "const"
        | "var" => ScanWord::Plain,
        _ => ScanWord::Name,
    }
}
