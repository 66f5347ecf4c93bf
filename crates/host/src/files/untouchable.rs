//! Names that no tool changes in a folder of the operator's, at any depth: what other
//! programs run or obey without being asked. A hook, an editor's task or a shell's startup
//! file written by a tool would run later, as the person, outside of every fence.
//!
//! Workspaces of our own have no such names: no person works in them.

use std::path::{Component, Path};

/// What `.git` is.
pub(crate) const GIT_DATA: &str = "the data of a repository";

/// What compiled code of Python is.
const COMPILED: &str = "compiled code of Python";

/// Endings of names, in lower case, and what they are.
const ENDINGS: &[(&str, &str)] = &[
    (".code-workspace", "settings of an editor"),
    (".pyc", COMPILED),
    (".pyo", COMPILED),
];

/// Names, in lower case, and what they are.
const NAMES: &[(&str, &str)] = &[
    (".git", GIT_DATA),
    (".gitmodules", "the list of submodules"),
    (".gitconfig", "settings of git"),
    (".husky", "hooks of a repository"),
    (".githooks", "hooks of a repository"),
    (".huskyrc", "hooks of a repository"),
    (".pre-commit-config.yaml", "hooks of a repository"),
    (".overcommit.yml", "hooks of a repository"),
    (".simple-git-hooks.json", "hooks of a repository"),
    (".simple-git-hooks.cjs", "hooks of a repository"),
    ("lefthook.yml", "hooks of a repository"),
    ("lefthook.yaml", "hooks of a repository"),
    ("lefthook-local.yml", "hooks of a repository"),
    (".lefthook.yml", "hooks of a repository"),
    (".lefthook.yaml", "hooks of a repository"),
    (".lefthook", "hooks of a repository"),
    (".lefthook-local", "hooks of a repository"),
    (".hg", GIT_DATA),
    (".hgrc", "settings of hg"),
    (".jj", GIT_DATA),
    (".svn", GIT_DATA),
    (".envrc", "a file that direnv runs"),
    (".direnv", "files that direnv runs"),
    ("mise.toml", "a file that mise runs"),
    (".mise.toml", "a file that mise runs"),
    ("mise.local.toml", "a file that mise runs"),
    (".mise.local.toml", "a file that mise runs"),
    (".autoenv.zsh", "a file that a shell runs on entering"),
    (".vscode", "settings of an editor"),
    (".idea", "settings of an editor"),
    (".fleet", "settings of an editor"),
    (".zed", "settings of an editor"),
    (".exrc", "settings of an editor"),
    (".vimrc", "settings of an editor"),
    (".nvimrc", "settings of an editor"),
    (".nvim.lua", "settings of an editor"),
    (".lvimrc", "settings of an editor"),
    (".dir-locals.el", "settings of an editor"),
    (".dir-locals-2.el", "settings of an editor"),
    (".vs", "settings of an editor"),
    (".devcontainer", "settings of an editor"),
    (".devcontainer.json", "settings of an editor"),
    (".emacs", "settings of an editor"),
    (".emacs.d", "settings of an editor"),
    (".helix", "settings of an editor"),
    (".vim", "settings of an editor"),
    (".cursor", "settings of an assistant"),
    (".claude", "settings of an assistant"),
    (".codex", "settings of an assistant"),
    (".agents", "settings of an assistant"),
    (".gemini", "settings of an assistant"),
    (".windsurf", "settings of an assistant"),
    (".mcp.json", "settings of an assistant"),
    (".aider.conf.yml", "settings of an assistant"),
    (".amazonq", "settings of an assistant"),
    (".augment", "settings of an assistant"),
    (".cline", "settings of an assistant"),
    (".clinerules", "settings of an assistant"),
    (".continue", "settings of an assistant"),
    (".crush.json", "settings of an assistant"),
    (".cursorrules", "settings of an assistant"),
    (".factory", "settings of an assistant"),
    (".goosehints", "settings of an assistant"),
    (".junie", "settings of an assistant"),
    (".kilocode", "settings of an assistant"),
    (".kiro", "settings of an assistant"),
    (".opencode", "settings of an assistant"),
    ("opencode.json", "settings of an assistant"),
    ("opencode.jsonc", "settings of an assistant"),
    (".qwen", "settings of an assistant"),
    (".roo", "settings of an assistant"),
    (".roomodes", "settings of an assistant"),
    (".roorules", "settings of an assistant"),
    (".trae", "settings of an assistant"),
    (".windsurfrules", "settings of an assistant"),
    (".bashrc", "a startup file of a shell"),
    (".bash_profile", "a startup file of a shell"),
    (".bash_login", "a startup file of a shell"),
    (".bash_logout", "a startup file of a shell"),
    (".bash_aliases", "a startup file of a shell"),
    (".profile", "a startup file of a shell"),
    (".zshrc", "a startup file of a shell"),
    (".zshenv", "a startup file of a shell"),
    (".zprofile", "a startup file of a shell"),
    (".zlogin", "a startup file of a shell"),
    (".zlogout", "a startup file of a shell"),
    (".kshrc", "a startup file of a shell"),
    (".cshrc", "a startup file of a shell"),
    (".tcshrc", "a startup file of a shell"),
    (".login", "a startup file of a shell"),
    (".inputrc", "a startup file of a shell"),
    (".gdbinit", "a startup file of a debugger"),
    (".gdbinit.py", "a startup file of a debugger"),
    (".lldbinit", "a startup file of a debugger"),
    (".pdbrc", "a startup file of a debugger"),
    (".pdbrc.py", "a startup file of a debugger"),
    (".rprofile", "a startup file of an interpreter"),
    (".renviron", "a startup file of an interpreter"),
    (".ghci", "a startup file of an interpreter"),
    (".iex.exs", "a startup file of an interpreter"),
    (".ocamlinit", "a startup file of an interpreter"),
    (".octaverc", "a startup file of an interpreter"),
    (".pythonrc", "a startup file of an interpreter"),
    (".pythonrc.py", "a startup file of an interpreter"),
    (".pythonstartup", "a startup file of an interpreter"),
    // As a module and as a package.
    ("sitecustomize", "a startup file of an interpreter"),
    ("sitecustomize.py", "a startup file of an interpreter"),
    ("usercustomize", "a startup file of an interpreter"),
    ("usercustomize.py", "a startup file of an interpreter"),
    // Python runs what lies there instead of the source beside it, and no patch shows it.
    ("__pycache__", COMPILED),
    (".irbrc", "a startup file of an interpreter"),
    (".pryrc", "a startup file of an interpreter"),
    (".psqlrc", "a startup file of a database client"),
    (".sqliterc", "a startup file of a database client"),
    (".my.cnf", "a startup file of a database client"),
    (".bundle", "settings of a package manager"),
    (".cargo", "settings of a package manager"),
    (".condarc", "settings of a package manager"),
    (".gemrc", "settings of a package manager"),
    (".npmrc", "settings of a package manager"),
    (".pypirc", "settings of a package manager"),
    (".yarnrc", "settings of a package manager"),
    (".yarnrc.yml", "settings of a package manager"),
    (".curlrc", "settings of a client"),
    (".wgetrc", "settings of a client"),
    (".screenrc", "settings of a terminal"),
    (".tmux.conf", "settings of a terminal"),
    (".ssh", "keys and settings of ssh"),
    (".netrc", "passwords for hosts"),
];

/// What a path touches that no tool changes, if it does: any of its names counts.
#[must_use]
pub fn untouchable(path: &Path) -> Option<&'static str> {
    let mut names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    // The first name that counts, from the root on: a protected folder
    // protects all below it.
    names.find_map(|name| of_name(&name))
}

/// What a single name is that no tool changes.
#[must_use]
pub(crate) fn of_name(name: &str) -> Option<&'static str> {
    let folded = folded(name);
    let ending = ENDINGS.iter().find(|(ending, _)| folded.ends_with(ending));
    if let Some((_, what)) = ending {
        return Some(what);
    }
    let found = NAMES.iter().find(|(known, _)| *known == folded);
    found.map(|(_, what)| *what)
}

/// A name as file systems that do not tell letters apart take it: in lower case, without
/// what cannot be seen, without the dots, spaces and stream names that Windows drops, and
/// its short form.
pub(crate) fn folded(name: &str) -> String {
    // Attack: `.g\u{200c}it` is `.git` to file systems that ignore such characters.
    let seen = name
        .chars()
        .filter(|character| !model::text::is_hidden(*character));
    let lower: String = seen.flat_map(char::to_lowercase).collect();
    let before_stream = lower.split(':').next().unwrap_or_default();
    let plain = before_stream.trim_end_matches(['.', ' ']);
    match plain {
        "git~1" => ".git".to_owned(),
        "gitmod~1" => ".gitmodules".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_obey_is_found_at_any_depth_and_however_it_is_spelled() {
        for path in [
            ".git",
            ".git/hooks/post-checkout",
            "a/b/.git/config",
            "vendor/x/.git",
            ".GIT/config",
            ".Git/hooks",
            ".g\u{200c}it/config",
            ".git./config",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            "GIT~1/config",
            ".gitmodules",
            "sub/.envrc",
            ".vscode/tasks.json",
            ".idea/workspace.xml",
            ".husky/pre-commit",
            ".bashrc",
            "home/.zshenv",
            ".hg/hgrc",
            "lib/.Rprofile",
            "team.code-workspace",
            "mise.toml",
            "./.git/x",
            "src/__pycache__/app.cpython-312.pyc",
            "old.pyc",
            "old.PYO",
            ".pdbrc",
            ".ghci",
            ".ocamlinit",
            "lib/sitecustomize.py",
            "sitecustomize/__init__.py",
            "usercustomize.py",
            ".yarnrc.yml",
            ".cargo/config.toml",
            "sub/.cargo/config",
            ".gdbinit.py",
            ".cursorrules",
            ".windsurfrules",
            ".kiro/settings/mcp.json",
            ".roo/mcp.json",
            ".cline/x",
            ".continue/config.yaml",
            ".amazonq/mcp.json",
            ".opencode/opencode.json",
            ".qwen/settings.json",
            ".trae/mcp.json",
            ".junie/mcp/mcp.json",
            ".helix/languages.toml",
            ".npmrc",
            ".pypirc",
            ".pythonrc",
        ] {
            assert!(untouchable(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_left_alone() {
        for path in [
            "src/main.rs",
            ".gitignore",
            ".gitattributes",
            ".github/workflows/ci.yml",
            "git/config",
            "x.git",
            "a.envrc",
            "profile",
            ".gitkeep",
            // These run when a person asks for them: the diff shows them.
            "Makefile",
            "package.json",
            "build.rs",
            ".env",
            ".editorconfig",
            "conftest.py",
            "setup.py",
            "Cargo.toml",
            "cargo/config.toml",
            "config.toml",
            "customize.py",
            "continue/x",
            "pyc",
            "a.pyi",
            "model.pth",
            ".yarn/cache/x.zip",
            "AGENTS.md",
        ] {
            assert_eq!(untouchable(Path::new(path)), None, "{path}");
        }
    }
}
