//! The tables of a page, each with the name that says what it is held to.

use super::facts;

const OPEN: &str = "<!-- table: ";

/// From here on a page is written by a test of its own.
const WRITTEN: &str = "<!-- written by the tests";

pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// What became of the tables of a page.
pub(crate) struct Held {
    /// The page with the tables that are made from the code.
    pub(crate) text: String,
    /// Tables that were held to the code.
    pub(crate) count: usize,
    pub(crate) faults: Vec<String>,
}

impl Table {
    fn read(lines: &[&str]) -> Table {
        let mut rows = lines.iter().map(|line| cells(line));
        let head = rows.next().unwrap_or_default();
        Table {
            head,
            rows: rows.skip(1).collect(),
        }
    }

    /// A cell, empty if there is none.
    pub(crate) fn cell(row: &[String], index: usize) -> &str {
        row.get(index).map_or("", String::as_str)
    }

    /// What stands in backticks in a column.
    pub(crate) fn words(&self, column: usize) -> Vec<String> {
        let cells = self.rows.iter().map(|row| Table::cell(row, column));
        cells.flat_map(code_words).collect()
    }
}

/// What stands in backticks.
pub(crate) fn code_words(cell: &str) -> Vec<String> {
    let words = cell.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_matches('|').replace("\\|", "\u{0}");
    let cells = line.split('|');
    cells
        .map(|cell| cell.trim().replace('\u{0}', "|"))
        .collect()
}

pub(crate) fn held(page: &str, text: &str) -> Held {
    let mut held = Held {
        text: String::new(),
        count: 0,
        faults: Vec::new(),
    };
    let mut name: Option<String> = None;
    let (mut is_fenced, mut is_written) = (false, page.starts_with("docs/reference/"));
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        is_fenced ^= line.starts_with("```");
        is_written |= line.starts_with(WRITTEN);
        if is_fenced || !line.starts_with('|') {
            if !line.trim().is_empty()
                && let Some(name) = name.take()
            {
                held.without_table(page, index, &name);
            }
            held.text.push_str(line);
            held.text.push('\n');
            if let Some(said) = line.trim().strip_prefix(OPEN) {
                name = said.strip_suffix("-->").map(|said| said.trim().to_owned());
            }
            continue;
        }
        let mut all = vec![line];
        while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with('|')) {
            all.push(line);
        }
        let as_it_is = format!("{}\n", all.join("\n"));
        let made = match name.take().as_deref() {
            Some("prose") => Ok(None),
            Some(name) => {
                held.count += 1;
                facts::hold(name, &Table::read(&all)).map_err(|why| format!("{name}: {why}"))
            }
            None if is_written => Ok(None),
            None => Err("a table without `<!-- table: NAME -->` above it".to_owned()),
        };
        let made = made.unwrap_or_else(|why| {
            held.faults.push(format!("{page}:{}: {why}", index + 1));
            None
        });
        held.text.push_str(&made.unwrap_or(as_it_is));
    }
    if let Some(name) = name {
        held.without_table(page, text.lines().count(), &name);
    }
    held
}

impl Held {
    /// A name has no table below it: one that can be made is put there.
    fn without_table(&mut self, page: &str, line: usize, name: &str) {
        let why = format!("{page}:{line}: no table stands below `{name}`");
        self.faults.push(why);
        if let Some(made) = facts::made(name) {
            self.text.push_str(&made);
            self.text.push('\n');
        }
    }
}

#[test]
fn a_table_needs_a_name_that_is_known() {
    let faults = |text: &str| held("README.md", text).faults.len();
    assert_eq!(faults("| a |\n| --- |\n| b |\n"), 1);
    assert_eq!(
        faults("<!-- table: prose -->\n\nwords\n\n| a |\n| --- |\n"),
        2
    );
    assert_eq!(faults("<!-- table: limits find -->\n\n## Next\n"), 1);
    assert_eq!(faults("<!-- table: limits find -->\n"), 1);
    assert_eq!(faults("<!-- table: no such -->\n\n| a |\n| --- |\n"), 1);
    assert_eq!(faults("<!-- table: prose -->\n\n| a |\n| --- |\n"), 0);
    assert_eq!(faults("```\n| a |\n```\n"), 0);
    assert_eq!(
        held("docs/reference/x.md", "| a |\n| --- |\n").faults.len(),
        0
    );
}
