//! The functions that rewritten code calls.
//!
//! | Name | Is |
//! | --- | --- |
//! | `__ag_main` | the async function the script becomes |
//! | `__ag_turn()` | called at the start of every turn of every loop; throws when the one budget of the script is spent |
//! | `__ag_guardKey(key)` | makes a computed key a string or number once and throws a `TypeError` if it leads to a prototype |
//! | `__safe_` + name | each of `RUNTIME_FUNCTIONS` and of `Preset::extra_globals` |
//!
//! `prelude` defines the first three; the code that runs the script defines the rest
//! before it, on the same line, so that the author's lines stay the author's.
//!
//! `Preset::extra_globals`: crate::Preset::extra_globals

pub use crate::preset::{RESERVED_PREFIXES, RUNTIME_FUNCTIONS};

/// The function a script becomes.
pub const MAIN: &str = "__ag_main";
/// The function that every turn of a loop calls.
pub const TURN: &str = "__ag_turn";
/// The function that checks every computed key.
pub const GUARD_KEY: &str = "__ag_guardKey";
/// The prefix of names that the runtime provides.
pub const SAFE: &str = "__safe_";
/// The `code` of the error that ends a script whose loops went round too often.
pub const ITERATION_LIMIT: &str = "ITERATION_LIMIT";
/// The `code` of the error for a refused key.
pub const KEY_REFUSED: &str = "KEY_REFUSED";

/// The name of the budget of turns.
pub const TURNS: &str = "__ag_turns";

/// Both functions, as the sandbox has them: a function that installs a face.
const FACE: &str = include_str!("../../../guest/prelude/guard.js");

/// The message of the error that ends such a script.
#[must_use]
pub fn iterations_spent(iterations_max: u64) -> String {
    format!("the loops of this script went round more than {iterations_max} times")
}

/// Whether an error is about a refused key.
#[must_use]
pub fn is_key_refused(message: &str) -> bool {
    message.starts_with("the key `") && message.ends_with("` is not allowed")
}

/// Definitions of `__ag_turn` and `__ag_guardKey`, on one line, for scripts that run
/// elsewhere than in the sandbox, which has them.
#[must_use]
pub fn prelude(iterations_max: u64) -> String {
    let lines = FACE.lines().map(str::trim);
    let face: String = lines.filter(|line| !line.starts_with("//")).collect();
    format!(
        "const {{{TURN},{GUARD_KEY}}}=((face)=>{{const made={{{TURNS}:{iterations_max}}};\
         face({{face:(name,install)=>install(made)}});return made}})({face});"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::name::META_METHODS;

    #[test]
    fn the_sandbox_has_the_same_messages() {
        let keys = [
            "constructor",
            "prototype",
            "[\"__proto__\"]",
            "__defineGetter__",
            "__defineSetter__",
            "__lookupGetter__",
            "__lookupSetter__",
        ];
        for key in keys.iter().chain(META_METHODS) {
            assert!(FACE.contains(&format!("    {key}: 1,\n")), "{key}");
        }
        for word in [TURN, GUARD_KEY, TURNS, ITERATION_LIMIT, KEY_REFUSED] {
            assert!(FACE.contains(word), "{word}");
        }
        let (before, after) = FACE.split_once("\" + most + \"").unwrap();
        let said = before.rsplit('"').next().unwrap().to_owned();
        let said = said + "7" + after.split('"').next().unwrap();
        assert_eq!(said, iterations_spent(7));
        let (before, after) = FACE.split_once("\" + name + \"").unwrap();
        let said = before.rsplit('"').next().unwrap().to_owned() + "constructor";
        let said = said + after.split('"').next().unwrap();
        assert_eq!(said, "the key `constructor` is not allowed");
        assert!(is_key_refused(&said));
        assert!(!prelude(7).contains('\n'));
    }
}
