//! What rewritten code calls: the one place that names it.
//!
//! | Name | Is |
//! | --- | --- |
//! | `__ag_main` | the async function the script becomes |
//! | `__ag_turn()` | called at the start of every turn of every loop; throws when the one budget of the script is spent |
//! | `__ag_guardKey(key)` | makes a computed key a string or number once and throws a `TypeError` if it leads to a prototype |
//! | `__safe_` + name | each of [`RUNTIME_FUNCTIONS`] and of [`Preset::extra_globals`] |
//!
//! [`prelude`] defines the first three; whoever runs the script defines the rest
//! before it, on the same line, so that the author's lines stay the author's.
//!
//! [`Preset::extra_globals`]: crate::Preset::extra_globals

use std::fmt::Write as _;

pub use crate::preset::{RESERVED_PREFIXES, RUNTIME_FUNCTIONS};

use crate::preset::META_METHODS;

/// The function a script becomes.
pub const MAIN: &str = "__ag_main";
/// What every turn of a loop calls.
pub const TURN: &str = "__ag_turn";
/// What every computed key goes through.
pub const GUARD_KEY: &str = "__ag_guardKey";
/// What stands before the names the runtime gives.
pub const SAFE: &str = "__safe_";
/// The `code` of the error that ends a script whose loops went round too often.
pub const ITERATION_LIMIT: &str = "ITERATION_LIMIT";
/// The `code` of the error for a refused key.
pub const KEY_REFUSED: &str = "KEY_REFUSED";

/// Keys refused at run time.
const KEYS: &[&str] = &[
    "constructor",
    "prototype",
    "__proto__",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// What the error says that ends such a script.
#[must_use]
pub fn iterations_spent(iterations_max: u64) -> String {
    format!("the loops of this script went round more than {iterations_max} times")
}

/// Definitions of `__ag_turn` and `__ag_guardKey`, on one line. What they need is
/// taken before the script can touch it.
#[must_use]
pub fn prelude(iterations_max: u64) -> String {
    let mut refused = String::new();
    for key in KEYS.iter().chain(META_METHODS) {
        // Computed, because `__proto__: 1` would set the prototype.
        let _ = write!(refused, "[\"{key}\"]:1,");
    }
    let spent = iterations_spent(iterations_max);
    format!(
        "const {{{TURN},{GUARD_KEY}}}=(()=>{{\"use strict\";let left={iterations_max};\
         const text=String,range=RangeError,type=TypeError,refused={{__proto__:null,{refused}}};\
         const fail=(error,code)=>{{error.code=code;throw error}};\
         return{{{TURN}:()=>{{if(--left<0)fail(new range(\"{spent}\"),\"{ITERATION_LIMIT}\")}},\
         {GUARD_KEY}:key=>{{if(typeof key===\"number\"||typeof key===\"symbol\")return key;const name=text(key);\
         if(refused[name]===1)fail(new type(\"the key `\"+name+\"` is not allowed\"),\"{KEY_REFUSED}\");return name}}}}}})();"
    )
}
