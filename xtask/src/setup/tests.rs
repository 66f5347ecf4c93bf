//! Versions as they are written and printed.

use super::{version, wanted};

#[test]
fn the_manifest_names_the_wanted_compiler() {
    let manifest = "[workspace.package]\nrust-version = \"1.95\"\n";
    assert_eq!(wanted(manifest), Some((1, 95)));
    assert_eq!(wanted("[workspace]\n"), None);
}

#[test]
fn the_compiler_prints_its_version() {
    assert_eq!(
        version("rustc 1.95.0 (0123abcde 2026-03-21)\n"),
        Some((1, 95))
    );
    assert_eq!(version("rustc 2.0.0-nightly\n"), Some((2, 0)));
    assert_eq!(version(""), None);
}

#[test]
fn an_older_or_missing_compiler_is_not_enough() {
    assert!(version("rustc 1.94.1 (x)") < Some((1, 95)));
    assert!(version("") < Some((1, 95)));
    assert!(version("rustc 1.100.0") >= Some((1, 95)));
}
