//! Subjects, good and bad.

use super::faults;

#[track_caller]
fn check(message: &str, expected: &[&str]) {
    assert_eq!(faults(message), expected, "{message:?}");
}

#[test]
fn a_subject_with_area_and_effect_is_fine() {
    check("store: sync the folder of a new file\n\nWhy.\n", &[]);
    check("store, cli: rename the log\n", &[]);
    check("xtask: check `use` groups", &[]);
}

#[test]
fn what_git_writes_itself_is_fine() {
    check(
        "Merge branch 'main' into a branch with a name that is quite long indeed, yes\n",
        &[],
    );
    check("fixup! store: sync the folder\n", &[]);
}

#[test]
fn columns_are_characters_and_72_are_enough() {
    let longest = format!("store: {}", "é".repeat(65));
    check(&longest, &[]);
    check(
        &format!("{longest}é"),
        &["the subject has 73 columns; shorten it to 72"],
    );
}

#[test]
fn a_subject_names_its_area() {
    let sentence = "the subject must read `area: effect`, as in `store: sync the folder`";
    for message in [
        "",
        "sync the folder",
        "Store: sync",
        "store:sync",
        "store: ",
        ": sync",
        "store,cli: sync",
    ] {
        check(message, &[sentence]);
    }
}

#[test]
fn all_faults_come_together() {
    check(
        "Sync the folder.\nWhy.\n",
        &[
            "the subject must read `area: effect`, as in `store: sync the folder`",
            "the subject must not end with a full stop",
            "an empty line must follow the subject",
        ],
    );
}
