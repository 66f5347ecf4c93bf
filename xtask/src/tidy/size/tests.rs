//! Files that are too long or too large.

use crate::tidy::tests::{check, clean};

#[test]
fn a_long_file_is_a_finding() {
    let lines = |count: usize| format!("//! Words.\n{}", "\n".repeat(count - 1));
    check(&clean().with("crates/model/src/a.rs", &lines(800)), &[]);
    check(
        &clean().with("crates/model/src/a.rs", &lines(801)),
        &["crates/model/src/a.rs:801: 801 lines in one file; at most 800"],
    );
    check(
        &clean().with("web/src/main.ts", &lines(900)),
        &["web/src/main.ts:801: 900 lines in one file; at most 800"],
    );
}

#[test]
fn source_we_only_carry_may_be_long() {
    check(
        &clean().with("guest/vendor/engine.c", &"\n".repeat(900)),
        &[],
    );
    check(&clean().with("cases/long.json", &"\n".repeat(900)), &[]);
}

#[test]
fn a_large_file_is_a_finding() {
    check(&clean().with_binary("web/logo.png", 512 * 1024), &[]);
    check(
        &clean().with_binary("web/logo.png", 513 * 1024),
        &["web/logo.png:1: 513 KiB in one file; at most 512 KiB"],
    );
    let image = "guest/image/x86_64/guest.cwasm";
    check(&clean().with_binary(image, 6 << 20), &[]);
    check(
        &clean().with_binary(image, (6 << 20) + 1),
        &["guest/image/x86_64/guest.cwasm:1: 6144 KiB in one file; at most 6144 KiB"],
    );
}

#[test]
fn the_length_of_functions_stays_asked() {
    let tree = clean()
        .with("clippy.toml", "too-many-lines-threshold = 700\n")
        .with("crates/model/clippy.toml", "too-many-lines-threshold = 700\ndisallowed-methods = [\"a\"]\ndisallowed-types = [\"a\"]\n");
    check(
        &tree,
        &["clippy.toml:1: `too-many-lines-threshold = 70` is missing"],
    );
}
