//! What settings of git name is found, however it is written; the rest is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

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

/// Settings, and a path that they name.
const NAMED: &[(&str, &str)] = &[
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
    ("[core]\n\talternateRefsCommand = bin/refs\n", "bin/refs"),
    ("[core]\n\tattributesFile = attributes\n", "attributes"),
    ("[core]\n\tvirtualFilesystem = bin/virtual\n", "bin/virtual"),
    ("[diff \"x\"]\n\tcommand = bin/diff\n", "bin/diff"),
    (
        "[gpg \"ssh\"]\n\tdefaultKeyCommand = bin/key -L\n",
        "bin/key",
    ),
    ("[hook \"x\"]\n\tcommand = bin/hook\n", "bin/hook"),
    ("[imap]\n\ttunnel = \"bin/tunnel -q\"\n", "bin/tunnel"),
    (
        "[init]\n\ttemplateDir = template\n",
        "template/hooks/pre-push",
    ),
    ("[instaweb]\n\thttpd = bin/httpd -f\n", "bin/httpd"),
    ("[lfs \"customtransfer.x\"]\n\tpath = bin/lfs\n", "bin/lfs"),
    ("[lfs \"customtransfer.x\"]\n\targs = -c lfs.py\n", "lfs.py"),
    ("[mergetool \"x\"]\n\tpath = bin/merge\n", "bin/merge"),
    ("[difftool \"x\"]\n\tpath = difference\n", "difference"),
    ("[sendemail]\n\ttoCmd = bin/to\n", "bin/to"),
    ("[sendemail]\n\tsendmailCmd = bin/send\n", "bin/send"),
    ("[sendemail \"x\"]\n\tsmtpServer = ./bin/smtp\n", "bin/smtp"),
    ("[svn]\n\tauthorsProg = bin/authors\n", "bin/authors"),
    ("[tar \"x\"]\n\tcommand = bin/tar\n", "bin/tar"),
    ("[trailer \"x\"]\n\tcmd = bin/trailer\n", "bin/trailer"),
    ("[remote \"x\"]\n\turl = ext::bin/reach %S x\n", "bin/reach"),
    (
        "[url \"ext::bin/reach x\"]\n\tinsteadOf = y\n[remote \"x\"]\n\tpushurl = ext::sh bin/p\n",
        "bin/p",
    ),
];

#[test]
fn what_settings_name_is_found_however_it_is_written() {
    for (config, path) in NAMED {
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

/// Attack: a nested repository whose hooks lie outside of it, beside the person's own files.
#[test]
fn what_a_nested_repository_names_outside_of_itself_is_found() {
    let place = Place::new("nested");
    place.write(".git/config", "");
    place.write(
        "vendor/lib/.git/config",
        "[core]\n\thooksPath = ../../tools/hooks\n[filter \"x\"]\n\tclean = ../clean.sh\n",
    );
    place.write("deep/er/.git", "gitdir: ../../data\n");
    place.write("data/config", "[core]\n\tfsmonitor = ../../watch\n");
    let outside = ["tools/hooks/pre-commit", "vendor/clean.sh", "watch"];
    let mut programs = RepositoryPrograms::of_tree(&place.0, None);
    for path in outside {
        assert!(programs.find(&place.0.join(path)).is_some(), "{path}");
        // The control: what lies above tells nothing of it.
        assert_eq!(place.what(path), None, "{path}");
    }
    for path in ["tools/other", "vendor/lib/src", "src/main.rs", "clean.sh"] {
        assert_eq!(programs.find(&place.0.join(path)), None, "{path}");
    }
}

/// A search that does not end in time must not pass for one that found nothing.
#[test]
fn a_search_without_time_protects_everything() {
    let place = Place::new("late");
    let mut programs = RepositoryPrograms::of_tree(&place.0, Some(Instant::now()));
    assert!(programs.find(&place.0.join("src/main.rs")).is_some());
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
