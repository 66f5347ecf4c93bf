//! What is said before and after.

use std::time::Duration;

use anyhow::bail;

use super::{BUILD, CHECKS, Ending, GUEST, Report, SETUP, announcement};
use crate::check;
use crate::run::TaskAnswer;

#[test]
fn every_check_is_announced_under_its_name() {
    let announced: Vec<_> = CHECKS.iter().map(|part| part.name).collect();
    let checked: Vec<_> = check::STEPS.iter().map(|step| step.name).collect();
    assert_eq!(announced, checked);
    let text = announcement().join("\n");
    assert!(text.contains("installs a C compiler from PyPI"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn the_table_has_every_part_that_ran_and_marks_the_failed() {
    let mut report = Report::new();
    let _ = report.time(&SETUP, || Ok(TaskAnswer::Yes)).unwrap();
    let _ = report.time(&GUEST, || Ok(TaskAnswer::No)).unwrap();
    report.time(&BUILD, || bail!("no compiler")).unwrap_err();
    let endings: Vec<_> = report.rows.iter().map(|(_, _, ending)| *ending).collect();
    assert_eq!(endings, [Ending::Well, Ending::Badly, Ending::Badly]);
    for row in &mut report.rows {
        row.1 = Duration::from_secs(67);
    }
    let table = report.table();
    assert_eq!(
        table.get(1..4).unwrap(),
        [
            "   what is needed on this machine              1:07",
            "   the sandbox guest, built and compared       1:07  FAILED",
            "   building the tests                          1:07  FAILED",
        ]
    );
}
