//! Names that no tool changes in a folder of the operator's, at any depth: what other
//! programs run or obey without being asked. A hook, an editor's task or a shell's startup
//! file written by a tool would run later, as the person, outside of every fence.
//!
//! Workspaces of our own have no such names: no person works in them.

use std::io::Read as _;
use std::path::{Component, Path};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{Dir, OpenOptions};

use crate::files::limit;

/// What `.git` is.
pub(crate) const GIT_DATA: &str = "the data of a repository";

/// Names, in lower case, and what they are.
const NAMES: &[(&str, &str)] = &[
    (".git", GIT_DATA),
    (".gitmodules", "the list of submodules"),
    (".gitconfig", "settings of git"),
    (".husky", "hooks of a repository"),
    (".githooks", "hooks of a repository"),
    (".pre-commit-config.yaml", "hooks of a repository"),
    ("lefthook.yml", "hooks of a repository"),
    (".envrc", "a file that direnv runs"),
    (".vscode", "settings of an editor"),
    (".idea", "settings of an editor"),
    (".fleet", "settings of an editor"),
    (".zed", "settings of an editor"),
    (".exrc", "settings of an editor"),
    (".vimrc", "settings of an editor"),
    (".nvimrc", "settings of an editor"),
    (".nvim.lua", "settings of an editor"),
    (".dir-locals.el", "settings of an editor"),
    (".devcontainer", "settings of an editor"),
    (".devcontainer.json", "settings of an editor"),
    (".cursor", "settings of an assistant"),
    (".claude", "settings of an assistant"),
    (".codex", "settings of an assistant"),
    (".mcp.json", "settings of an assistant"),
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
    names.find_map(|name| of_name(&name))
}

/// What a single name is that no tool changes.
#[must_use]
pub(crate) fn of_name(name: &str) -> Option<&'static str> {
    let folded = folded(name);
    let found = NAMES.iter().find(|(known, _)| *known == folded);
    found.map(|(_, what)| *what)
}

/// Whether a path lies where a repository above it keeps its hooks (`core.hooksPath`).
pub(crate) fn hook(root: &Dir, path: &Path) -> Option<&'static str> {
    path.ancestors().find_map(|folder| {
        let config = config_of(root, folder)?;
        let inside = match folder.as_os_str().is_empty() {
            true => path,
            false => path.strip_prefix(folder).ok()?,
        };
        let mut hooks = hooks_paths(&config).into_iter();
        let is_hook = hooks.any(|hooks| {
            let hooks = Path::new(hooks.trim_start_matches("./")).to_owned();
            inside.starts_with(&hooks) && !hooks.as_os_str().is_empty()
        });
        is_hook.then_some("hooks of a repository")
    })
}

/// The settings of the repository in a folder, if there is one and they are not overlong.
fn config_of(root: &Dir, folder: &Path) -> Option<String> {
    let path = folder.join(".git").join("config");
    let path = match path.strip_prefix(".") {
        Ok(below) => below,
        Err(_) => &path,
    };
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    let file = root.open_with(path, &options).ok()?;
    let mut text = Vec::new();
    file.take(limit::REPOSITORY_CONFIG_BYTES_MAX)
        .read_to_end(&mut text)
        .ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Every value of `hooksPath` in the settings of a repository. Sections are not told apart:
/// too much protected is better than too little.
fn hooks_paths(config: &str) -> Vec<String> {
    let values = config.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name
            .rsplit([']', ' ', '\t'])
            .find(|word| !word.is_empty())?;
        name.eq_ignore_ascii_case("hookspath")
            .then(|| value.trim().trim_matches('"').to_owned())
    });
    values.collect()
}

/// A name as file systems that do not tell letters apart take it: in lower case, without
/// what cannot be seen, without the dots, spaces and stream names that Windows drops, and
/// its short form.
fn folded(name: &str) -> String {
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
            "./.git/x",
        ] {
            assert!(untouchable(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn the_folder_of_hooks_is_read_from_the_settings() {
        let config = "[core]\n\tbare = false\n\thooksPath = \"tools/hooks\"\n[x]\nHooksPath=h2\n";
        assert_eq!(hooks_paths(config), ["tools/hooks", "h2"]);
        assert_eq!(hooks_paths("[core] hooksPath = a\n"), ["a"]);
        assert!(hooks_paths("[core]\n\tworktree = x\n").is_empty());
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
        ] {
            assert_eq!(untouchable(Path::new(path)), None, "{path}");
        }
    }
}
