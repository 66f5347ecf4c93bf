//! What settings of git name is found, however it is written; the rest is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::RepositoryPrograms;
use super::setting::{Kind, read};

/// A folder that goes with this value.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("ringfence-repository-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path.canonicalize().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn what(&self, path: &str) -> Option<&'static str> {
        RepositoryPrograms::default().find(&self.0.join(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_settings_name_is_found_however_it_is_written() {
    let named = [
        (
            "[core]\n\thooksPath = team/hooks\n",
            "team/hooks/pre-commit",
        ),
        ("[core] hooksPath = ./team/hooks/\n", "team/hooks/deep/x"),
        ("[CORE]\nHOOKSPATH=\"team/hooks\" # ours\n", "team/hooks/a"),
        ("[core]\n\thooksPath = team/\\\nhooks\n", "team/hooks/a"),
        ("[core]\n\thooksPath = x/../team/hooks\n", "Team/HOOKS/a"),
        ("[core]\n\thooksPath = .\n", "pre-commit"),
        ("[core]\n\tfsmonitor = tools/watch\n", "tools/watch"),
        (
            "[core]\n\tsshCommand = ssh -F tools/ssh.conf\n",
            "tools/ssh.conf",
        ),
        (
            "[filter \"a]b\"]\n\tclean = python3 clean.py %f\n",
            "clean.py",
        ),
        (
            "[diff \"x\"]\n\ttextconv = \"sh -c 'tools/show \\\"$1\\\"' -\"\n",
            "tools/show",
        ),
        (
            "[merge \"x\"]\n\tdriver = ./bin/merge %O %A %B\n",
            "bin/merge",
        ),
        ("[gpg \"ssh\"]\n\tprogram = bin/sign\n", "bin/sign"),
        ("[credential]\n\thelper = !bin/login\n", "bin/login"),
        ("[pager]\n\tlog = bin/page\n", "bin/page"),
        ("[include]\n\tpath = ../team.gitconfig\n", "team.gitconfig"),
    ];
    for (config, path) in named {
        let place = Place::new("named");
        place.write(".git/config", config);
        assert!(place.what(path).is_some(), "{config} {path}");
        for other in [
            "src/main.rs",
            "team/readme",
            "tools/other",
            "clean/x",
            "ssh",
        ] {
            assert_eq!(place.what(other), None, "{config} {other}");
        }
    }
}

#[test]
fn included_settings_count_like_the_first() {
    let place = Place::new("included");
    place.write(".git/config", "[include]\n\tpath = ../conf/team\n");
    place.write("conf/team", "[core]\n\thooksPath = h\n");
    assert_eq!(place.what("h/pre-push"), Some("hooks of a repository"));
    assert_eq!(place.what("conf/team"), Some("settings of git"));
    assert_eq!(place.what("conf/other"), None);
}

/// Attack: a link that the settings go through.
#[test]
fn the_place_where_a_named_link_leads_counts_too() {
    let place = Place::new("link");
    place.write(".git/config", "[core]\n\thooksPath = link\n");
    place.write("real/pre-commit", "");
    std::os::unix::fs::symlink("real", place.0.join("link")).unwrap();
    assert!(place.what("real/pre-commit").is_some());
    assert!(place.what("link/pre-commit").is_some());
    assert_eq!(place.what("realm"), None);
}

#[test]
fn settings_that_cannot_be_read_protect_everything() {
    let place = Place::new("unreadable");
    place.write(".git/config", &"#".repeat(300 << 10));
    assert!(place.what("src/main.rs").is_some());
    place.write(".git/config", "[include]\n\tpath = config\n");
    assert!(place.what("src/main.rs").is_some());
    place.write(".git/config", "");
    assert_eq!(place.what("src/main.rs"), None);
}

/// Linked working trees and submodules have a file `.git`; repositories lie in each other, and
/// around the folder.
#[test]
fn files_that_name_a_repository_are_followed_by_git_and_by_us() {
    let place = Place::new("linked");
    let git = |folder: &str, arguments: &[&str]| {
        let ran = Command::new("git")
            .args(arguments)
            .current_dir(place.0.join(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "protocol.file.allow")
            .env("GIT_CONFIG_VALUE_0", "always")
            .args::<[&str; 0], &str>([])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{arguments:?} {ran:?}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    };
    fs::create_dir(place.0.join("main")).unwrap();
    git("main", &["init", "-q"]);
    git("main", &["config", "user.name", "x"]);
    git("main", &["config", "user.email", "x@example.com"]);
    git("main", &["commit", "-q", "--allow-empty", "-m", "x"]);
    git("main", &["config", "core.hooksPath", "team"]);
    git("main", &["worktree", "add", "-q", "../tree"]);
    git("main", &["submodule", "--quiet", "add", "../main", "sub"]);
    git("main/sub", &["config", "core.hooksPath", "own"]);
    for (folder, hooks) in [("main", "team"), ("tree", "team"), ("main/sub", "own")] {
        // Git agrees.
        let told = git(folder, &["rev-parse", "--git-path", "hooks"]);
        assert_eq!(Path::new(&told), Path::new(hooks), "{folder}");
        let path = format!("{folder}/{hooks}/pre-commit");
        assert!(place.what(&path).is_some(), "{path}");
        assert_eq!(place.what(&format!("{folder}/src/x")), None);
    }
    git("main", &["config", "core.hooksPath", "deep/er"]);
    assert!(place.what("main/deep/er/x").is_some());
}

#[test]
fn a_text_of_any_kind_is_read_to_its_end() {
    for text in [
        "",
        "[",
        "[a",
        "[a \"b",
        "=",
        "x",
        "\\",
        "a=\\",
        "a=\"",
        "[a]b",
        "\u{feff}[x]\r\ny=1\r\n",
        "[a \"\\",
    ] {
        let _ = read(text);
    }
    let found = read("[a \"b\"]x=1\ny\n[c]z = \"q # r\" ; s\n");
    let shown: Vec<_> = found
        .iter()
        .map(|one| format!("{}.{}={}", one.section, one.name, one.value))
        .collect();
    assert_eq!(shown, ["a.x=1", "a.y=", "c.z=q # r"]);
    assert!(found.iter().all(|one| one.kind() == Kind::Ordinary));
}
