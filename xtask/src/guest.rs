//! `cargo xtask guest`: builds what runs inside the sandbox. Quick when nothing
//! it is built from has changed; minutes on a fresh machine.

use anyhow::Result;

use crate::root::Root;
use crate::run::{self, TaskAnswer};

/// The builder's own workspace: it brings a compiler that nothing else needs.
const BUILDER: &str = "guest/builder/Cargo.toml";

/// Builds the guest if there is none for the sources as they are.
pub(crate) fn guest(root: &Root) -> Result<TaskAnswer> {
    let target = root.join("target/guest/build");
    let mut command = run::cargo(
        root,
        &[
            "run",
            "--quiet",
            "--release",
            "--locked",
            "--manifest-path",
            BUILDER,
        ],
    );
    run::run(command.arg("--target-dir").arg(target))
}
