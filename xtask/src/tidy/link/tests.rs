//! Links that lead nowhere, and those that only look so.

use crate::tidy::tests::{check, clean};

fn pages(text: &str) -> crate::tidy::tree::Tree {
    clean()
        .with("docs/guide/start.md", text)
        .with(
            "docs/guide/next.md",
            "# Next: the `check` command\n\n## Again\n\n## Again\n",
        )
        .with_binary("docs/guide/picture one.png", 10)
        .with("README.md", "# Ringfence\n")
}

#[track_caller]
fn fine(text: &str) {
    check(&pages(text), &[]);
}

#[track_caller]
fn refused(text: &str, sentence: &str) {
    check(
        &pages(text),
        &[&format!("docs/guide/start.md:1: {sentence}")],
    );
}

#[test]
fn links_to_files_and_folders_are_followed() {
    fine("[next](next.md), [home](../../README.md), [all](..), [model](../../crates/model/)\n");
    fine("![picture](picture%20one.png \"a title\") and [same](./next.md)\n");
    refused("[gone](gone.md)\n", "the link `gone.md` leads nowhere");
    refused("![gone](<gone.png>)\n", "the link `gone.png` leads nowhere");
    refused(
        "[out](../../../out.md)\n",
        "the link `../../../out.md` leads nowhere",
    );
    refused(
        "[root](/README.md)\n",
        "the link `/README.md` must be relative",
    );
}

#[test]
fn headings_are_followed() {
    fine("[next](next.md#next-the-check-command) [again](next.md#again-1)\n");
    fine("# Here we are\n\n[here](#here-we-are)\n");
    refused(
        "[next](next.md#gone)\n",
        "`docs/guide/next.md` has no heading `#gone`",
    );
    refused(
        "[here](#gone)\n",
        "`docs/guide/start.md` has no heading `#gone`",
    );
    fine("[line](../../crates/model/src/lib.rs#L1)\n");
}

#[test]
fn other_ways_to_link_are_seen() {
    refused("[label]: gone.md\n", "the link `gone.md` leads nowhere");
    refused(
        "<a href=\"gone.md\">gone</a>\n",
        "the link `gone.md` leads nowhere",
    );
    refused(
        "<img src=\"gone.png\">\n",
        "the link `gone.png` leads nowhere",
    );
}

#[test]
fn the_web_is_left_alone() {
    fine("[web](https://example.com/a_(b)) [post](mailto:a@example.com)\n");
}

#[test]
fn code_is_not_a_link() {
    fine("`[a](gone.md)` and ``[`b`](gone.md)``\n");
    fine("```\n[a](gone.md)\n```\n");
    fine("~~~text\n```\n[a](gone.md)\n~~~\n");
    refused(
        "a ` alone, [gone](gone.md)\n",
        "the link `gone.md` leads nowhere",
    );
}
