//! The files of a release as they lie in the archive.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::dependencies::Dependencies;
use super::{Release, licences, must, sbom};
use crate::root::Root;
use crate::run;

/// The debug information of the program, beside the archive.
pub(crate) const DEBUG: &str = "ringfence.debug";

/// Shells, and where each looks for completions below `share`.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "bash-completion/completions/ringfence"),
    ("zsh", "zsh/site-functions/_ringfence"),
    ("fish", "fish/vendor_completions.d/ringfence.fish"),
];

/// A folder with everything in it.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: PathBuf,
    loose: PathBuf,
}

impl Stage {
    /// Puts everything where it belongs.
    pub(crate) fn make(
        root: &Root,
        release: &Release,
        dependencies: &Dependencies,
        program: &Path,
    ) -> Result<Stage> {
        let folder = release.folder.join("stage").join(release.name());
        let stage = Stage {
            folder,
            loose: release.folder.clone(),
        };
        stage.add_program(program)?;
        let documents: &[(&str, &str)] = &[
            ("LICENSE", "LICENSE"),
            ("README.md", "README.md"),
            ("CHANGELOG.md", "CHANGELOG.md"),
            ("SECURITY.md", "SECURITY.md"),
            (
                "packaging/ringfence.service",
                "lib/systemd/system/ringfence.service",
            ),
        ];
        for (from, to) in documents {
            let text = fs::read(root.join(from)).with_context(|| format!("there is no {from}"))?;
            stage.write(to, &text)?;
        }
        for (shell, to) in SHELLS {
            let text = stage.ask(&["completions", shell])?;
            stage.write(&format!("share/{to}"), text.as_bytes())?;
        }
        let pages = stage.folder.join("share/man/man1").display().to_string();
        stage.ask(&["man", "--output", &pages])?;
        let shipped = dependencies.shipped();
        stage.write("LICENSES.txt", licences::text(&shipped)?.as_bytes())?;
        let sbom = format!("{:#}\n", sbom::document(release, &shipped));
        stage.write(sbom::FILE, sbom.as_bytes())?;
        fs::write(stage.loose(sbom::FILE), sbom)?;
        Ok(stage)
    }

    /// The program without its debug information, which goes beside it.
    fn add_program(&self, program: &Path) -> Result<()> {
        let to = self.program();
        fs::create_dir_all(self.folder.join("bin"))?;
        let debug = self.loose(DEBUG);
        must(
            Command::new("objcopy")
                .args(["--only-keep-debug", "--compress-debug-sections"])
                .arg(program)
                .arg(&debug),
        )?;
        must(
            Command::new("objcopy")
                .arg("--strip-all")
                .arg(format!("--add-gnu-debuglink={}", debug.display()))
                .arg(program)
                .arg(&to),
        )?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("bin/ringfence")
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file beside the archive.
    pub(crate) fn loose(&self, name: &str) -> PathBuf {
        self.loose.join(name)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, content).with_context(|| format!("could not write {name}"))
    }

    /// The output of the program for these arguments; it needs no home.
    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(self.program());
        command.args(arguments).env_clear();
        let text = run::output(&mut command);
        text.with_context(|| format!("`ringfence {}` failed", arguments.join(" ")))
    }

    /// Packs it.
    pub(crate) fn archive(&self, release: &Release) -> Result<PathBuf> {
        let archive = release.folder.join(format!("{}.tar.gz", release.name()));
        let parent = self.folder.parent().context("the stage is nowhere")?;
        tar(parent, &[&release.name()], &archive, release.time)?;
        Ok(archive)
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let parent = self.folder.parent().context("the stage is nowhere")?;
        fs::remove_dir_all(parent).context("could not remove the stage")
    }
}

/// A reproducible archive.
pub(crate) fn tar(folder: &Path, names: &[&str], to: &Path, time: u64) -> Result<()> {
    let mut command = Command::new("tar");
    command
        .args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--format=gnu",
        ])
        .args(["--mode=u=rwX,go=rX"])
        .arg(format!("--mtime=@{time}"))
        .arg("--use-compress-program=gzip -n9")
        .arg("-cf")
        .arg(to)
        .arg("-C")
        .arg(folder)
        .args(names);
    must(&mut command)
}
