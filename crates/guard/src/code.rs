//! Every finding of the guard, listed once, with its stable code.
//!
//! A code never changes its meaning and is never used again for another. The
//! reference page is generated from here.

use std::fmt::Write as _;

/// Writes the enum and its tables from one list, so that no code can lack a
/// meaning or its line on the reference page.
macro_rules! codes {
    ($($name:ident, $code:literal, $meaning:literal;)*) => {
        /// A finding of the guard.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum IssueCode {
            $(#[doc = $meaning] $name,)*
        }

        impl IssueCode {
            /// All of them, in the order of the layers.
            pub const ALL: &[IssueCode] = &[$(IssueCode::$name,)*];

            /// The stable code.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(IssueCode::$name => $code,)*
                }
            }

            /// What it means, for the reference page.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(IssueCode::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    ScanInputTooLarge, "PRESCANNER_INPUT_TOO_LARGE", "The script is empty or longer than the preset allows.";
    ScanLineTooLong, "PRESCANNER_LINE_TOO_LONG", "A line is longer than the preset allows.";
    ScanTooManyLines, "PRESCANNER_TOO_MANY_LINES", "The script has more lines than the preset allows.";
    ScanNullByte, "PRESCANNER_NULL_BYTE", "The script holds a null byte.";
    ScanNestingOverflow, "PRESCANNER_NESTING_OVERFLOW", "Brackets or operators nest deeper than the preset allows.";
    ScanOperatorSpam, "PRESCANNER_OPERATOR_SPAM", "Too many operators in a row without a space.";
    ScanRegexBlocked, "PRESCANNER_REGEX_BLOCKED", "The preset allows no regular expression literals.";
    ScanRegexCount, "PRESCANNER_REGEX_COUNT", "The script has more regular expressions than the preset allows.";
    ScanRegexTooLong, "PRESCANNER_REGEX_TOO_LONG", "A regular expression is longer than the preset allows.";
    ScanRedos, "PRESCANNER_REDOS", "A regular expression can run practically forever on some inputs.";
    ScanAmbiguousSlash, "PRESCANNER_AMBIGUOUS_SLASH", "A `/` can be read as a division or as the start of a regular expression, or the code has an HTML comment mark.";
    ScanHomograph, "PRESCANNER_HOMOGRAPH", "A name mixes letters of different scripts that look alike.";
    ScanBidi, "PRESCANNER_BIDI_ATTACK", "A control character changes the direction of the text, so that the script reads differently from how it runs.";
    ScanUnicode, "PRESCANNER_UNICODE_SUSPICIOUS", "Invisible characters: anywhere in code, or many in strings and comments. A few in text are a warning.";
    ScanLineEnd, "PRESCANNER_HIDDEN_LINE_END", "U+2028, U+2029 or a carriage return alone ends a line where few editors show it, so that what looks like a comment runs. In strings they are a warning.";
    ScanStringTooLong, "PRESCANNER_STRING_TOO_LONG", "A string is longer than the preset allows.";
    ScanStringTotal, "PRESCANNER_STRING_TOTAL", "All strings together are longer than the preset allows.";
    ParseError, "PARSE_ERROR", "The script is not JavaScript.";
    NoEval, "NO_EVAL", "Code made from text: `eval`, `Function`, timers with text, `with`, `import()`.";
    NoModule, "NO_MODULE", "`import` and `export` have no place in a script.";
    ReservedPrefix, "RESERVED_PREFIX", "Names that start with `__ag_`, `__safe_` or `__REF_` belong to the runtime.";
    ReservedPrefixAssignment, "RESERVED_PREFIX_ASSIGNMENT", "A name of the runtime is assigned to.";
    ReservedPrefixMemberAssignment, "RESERVED_PREFIX_MEMBER_ASSIGNMENT", "A property with a name of the runtime is written.";
    UnknownGlobal, "UNKNOWN_GLOBAL", "A name is neither declared where it is used nor one the preset offers.";
    NoUserFunctionDeclaration, "NO_USER_FUNCTION_DECLARATION", "A function is declared; arrow functions are allowed.";
    NoUserFunctionExpression, "NO_USER_FUNCTION_EXPRESSION", "A function expression; arrow functions are allowed.";
    NoUserArrowFunction, "NO_USER_ARROW_FUNCTION", "The preset allows no functions at all.";
    NoUserMethodDefinition, "NO_USER_METHOD_DEFINITION", "A class or a method of a class.";
    NoUserMethodShorthand, "NO_USER_METHOD_SHORTHAND", "A method, getter or setter in an object; a property with an arrow function is allowed.";
    NoGlobalAccess, "NO_GLOBAL_ACCESS", "`this`, `globalThis`, `window`, `self` or `global`.";
    NoGlobalDestructure, "NO_GLOBAL_DESTRUCTURE", "The global object is destructured.";
    NoConstructorAccess, "NO_CONSTRUCTOR_ACCESS", "`.constructor` leads from any value to the function that makes code from text.";
    NoReflectApi, "NO_REFLECT_API", "`Reflect` bypasses the rules.";
    NoMetaProgramming, "NO_META_PROGRAMMING", "Functions that change how objects work, such as `Object.defineProperty`.";
    DisallowedIdentifier, "DISALLOWED_IDENTIFIER", "A name the preset refuses, as a variable or as a key.";
    ForbiddenLoop, "FORBIDDEN_LOOP", "A kind of loop the preset refuses.";
    InfiniteLoop, "INFINITE_LOOP", "A loop without a condition, or with one that is always true.";
    InvalidArgumentCount, "INVALID_ARGUMENT_COUNT", "A function is called with too few or too many arguments.";
    InvalidArgumentType, "INVALID_ARGUMENT_TYPE", "An argument is visibly not of the kind the function takes.";
    UnreachableCode, "UNREACHABLE_CODE", "Warning: code after `return`, `throw`, `break` or `continue` never runs.";
    MissingCallTarget, "MISSING_CALL_TARGET", "`callTool` without the name of a tool.";
    DynamicCallTarget, "DYNAMIC_CALL_TARGET", "The name of the tool is not a literal, and the preset requires one.";
    UnknownToolName, "UNKNOWN_TOOL_NAME", "The script calls a tool that is not among those it may use.";
    UnawaitedCall, "UNAWAITED_CALL", "Warning: a call of a tool is not awaited, so it is stopped when the script ends and its errors are lost.";
    NoCallTargetAssignment, "NO_CALL_TARGET_ASSIGNMENT", "A function of the runtime is replaced or hidden by another.";
    RequiredFunctionNotCalled, "REQUIRED_FUNCTION_NOT_CALLED", "A required call is missing.";
    FunctionCalledTooManyTimes, "FUNCTION_CALLED_TOO_MANY_TIMES", "A function is called in more places than allowed.";
    NoRegexLiteral, "NO_REGEX_LITERAL", "The preset allows no regular expression literals.";
    RegexTooLong, "REGEX_TOO_LONG", "A regular expression is longer than the preset allows.";
    RegexRedosVulnerable, "REGEX_REDOS_VULNERABLE", "A regular expression can run practically forever on some inputs.";
    RegexRedosSuspicious, "REGEX_REDOS_SUSPICIOUS", "Warning: a regular expression may be slow on some texts.";
    NoRegexMethod, "NO_REGEX_METHOD", "A method is given a regular expression, and the preset allows none.";
    RegexMethodDynamic, "REGEX_METHOD_DYNAMIC", "Warning: a method is given a pattern that is only known at run time.";
    NoComputedDestructuring, "NO_COMPUTED_DESTRUCTURING", "A computed key in a destructuring pattern.";
    NoDangerousDestructuring, "NO_DANGEROUS_DESTRUCTURING", "A destructuring pattern reads a key that leads to prototypes or constructors.";
    ResourceExhaustion, "RESOURCE_EXHAUSTION", "A constant asks for far too much memory or time.";
    ConstructorAccess, "CONSTRUCTOR_ACCESS", "A key is put together so that it reads `constructor` or `prototype`.";
    JsonCallbackNotAllowed, "JSON_CALLBACK_NOT_ALLOWED", "A function given to `JSON.parse` or `JSON.stringify`.";
    NoAsync, "NO_ASYNC", "The preset allows no async functions.";
    NoAwait, "NO_AWAIT", "The preset allows no `await`.";
    UnicodeZeroWidth, "UNICODE_ZERO_WIDTH", "A name holds a character without width.";
    UnicodeBidi, "UNICODE_BIDI_ATTACK", "A name holds a character that changes the direction of the text.";
    UnicodeHomoglyph, "UNICODE_HOMOGLYPH", "A name, with its escapes read, mixes letters of different scripts that look alike.";
    UnicodeInvisible, "UNICODE_INVISIBLE", "A name holds a character that cannot be seen.";
}

/// The reference page.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# What the guard finds\n\nCodes of `ringfence script check`. A code never changes its meaning. Codes that \
         start with `PRESCANNER_` come from the raw text, before anything parses it.\n\n\
         | Code | Meaning |\n| --- | --- |\n",
    );
    for code in IssueCode::ALL {
        let _ = writeln!(page, "| `{}` | {} |", code.word(), code.meaning());
    }
    page
}
