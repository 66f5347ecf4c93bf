//! Paths out of code.

use super::{attributes, mentions};

/// Paths of two segments or more, as the code spells them.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found = mentions(text)
        .into_iter()
        .filter(|mention| mention.segments.len() > 1);
    let found: Vec<String> = found.map(|mention| mention.segments.join("::")).collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn plain_paths_are_whole() {
    check("let a = std::fs::read(b);", &["std::fs::read"]);
    check("use ::std::fs;", &["std::fs"]);
    check(
        "let a: &dyn ::std::io::Read = b as ::std::fs::File;",
        &["std::io::Read", "std::fs::File"],
    );
    check("use std :: fs;", &["std::fs"]);
    check("use std::\n    fs;", &["std::fs"]);
    check("Vec::<std::fs::File>::new()", &["std::fs::File"]);
    check("use r#std::r#fs;", &["std::fs"]);
}

#[test]
fn groups_are_taken_apart() {
    check(
        "use std::{fs, net::TcpStream};",
        &["std::fs", "std::net::TcpStream"],
    );
    check(
        "use std::{io::{self, Read as R, Write}, time::*, env as e, fs};",
        &[
            "std::io",
            "std::io::Read",
            "std::io::Write",
            "std::time::*",
            "std::env",
            "std::fs",
        ],
    );
    check("use {std::fs, core::fmt};", &["std::fs", "core::fmt"]);
    check("use ::{std::fs};", &["std::fs"]);
}

#[test]
fn comments_and_strings_mention_nothing() {
    check("// std::fs\nlet a = \"std::net\";", &[]);
}

#[test]
fn a_path_knows_its_line() {
    let found = mentions("use std::{\n    fmt,\n    fs,\n};");
    let lines: Vec<usize> = found.iter().map(|mention| mention.line).collect();
    assert_eq!(lines, [1, 2, 3]);
}

#[test]
fn a_new_name_is_noticed() {
    assert!(
        mentions("use std as s;")
            .iter()
            .any(|mention| mention.alias.is_some())
    );
    assert!(
        !mentions("use std::fs;")
            .iter()
            .any(|mention| mention.alias.is_some())
    );
}

#[test]
fn ends_and_beginnings_are_compared_by_segment() {
    let [mention] = &mentions("std::fs_extra::read")[..] else {
        panic!("one path")
    };
    assert!(!mention.is_within("std::fs"));
    assert!(mention.is_within("std::fs_extra"));
    assert!(mention.ends_with("read"));
    assert!(!mention.ends_with("a::b::c::d::read"));
}

#[test]
fn attributes_are_found_with_their_names() {
    let found = attributes("#[test]\n#[cfg_attr(miri, ignore)]\nfn a() {}\n#![warn(x)]");
    let names: Vec<String> = found
        .iter()
        .map(|(names, line)| format!("{line} {}", names.join(" ")))
        .collect();
    assert_eq!(names, ["1 test", "2 cfg_attr miri ignore", "4 warn x"]);
}
