//! The scripts that shells load to complete words. Bash, zsh and fish ask the program
//! for each word, so they complete names of tools, callers and rules too; the others
//! get clap's list of commands and flags.
//!
//! Attack: a person types `./ringfence` in a folder with a hostile program of that name,
//! and the completion would run it. So the scripts run the one on the path.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::CommandLine;

const BASH: &str = r#"# Completions of ringfence for bash; made by `ringfence completions bash`.
_ringfence() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <(command ringfence complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _ringfence ringfence
"#;

const ZSH: &str = r#"#compdef ringfence
# Completions of ringfence for zsh; made by `ringfence completions zsh`.
_ringfence() {
    local -a lines
    lines=("${(@f)$(command ringfence complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${lines[1]}" ]]; then
        lines=("${(@)lines//:/\\:}")
        lines=("${(@)lines/$'\t'/:}")
        _describe ringfence lines
    else
        _files
    fi
}
if [[ "${funcstack[1]}" = _ringfence ]]; then
    _ringfence "$@"
else
    compdef _ringfence ringfence
fi
"#;

const FISH: &str = r#"# Completions of ringfence for fish; made by `ringfence completions fish`.
function __ringfence_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    command ringfence complete -- $words[2..-1] "$current" 2>/dev/null
end
complete -c ringfence -a '(__ringfence_complete)'
"#;

/// The script of a shell.
pub(crate) fn script(shell: Shell) -> String {
    match shell {
        Shell::Bash => BASH.to_owned(),
        Shell::Zsh => ZSH.to_owned(),
        Shell::Fish => FISH.to_owned(),
        other => {
            let mut text = Vec::new();
            let mut command = CommandLine::command();
            clap_complete::generate(other, &mut command, "ringfence", &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}
