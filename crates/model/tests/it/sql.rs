//! Statements as data: what each is taken for.

use std::fs;

use model::sql::{SqlClass, SqlDialect, SqlReading, read};

use crate::entries;

fn word(reading: SqlReading) -> &'static str {
    match reading {
        SqlReading::One(SqlClass::Query) => "query",
        SqlReading::One(SqlClass::Mutate) => "mutate",
        SqlReading::One(SqlClass::Admin) => "admin",
        SqlReading::Several => "several",
        SqlReading::Nothing => "nothing",
        SqlReading::Unread => "unread",
    }
}

/// The statements of a table, with the class of each and how many columns follow it.
fn table(name: &str, columns: usize) -> Vec<(String, String)> {
    let path = format!("{}/../../cases/sql/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let line = |line: &str| {
        let mut parts = line.splitn(columns + 1, ' ').map(str::to_owned);
        let class = parts.next().unwrap();
        (class, parts.last().unwrap())
    };
    lines.map(line).collect()
}

#[test]
fn every_statement_is_taken_for_what_the_table_says() {
    for (name, columns, dialect) in [
        ("postgres.txt", 3, SqlDialect::Postgres),
        ("sqlite.txt", 2, SqlDialect::Sqlite),
    ] {
        let mut wrong = Vec::new();
        let statements = table(name, columns);
        assert!(statements.len() > 50, "{name}");
        for (class, statement) in statements {
            let found = word(read(&statement, dialect));
            // What the parser cannot read is the worst, and so is what it reads as such.
            let is_same = found == class || (class == "admin" && found == "unread");
            if !is_same {
                wrong.push(format!("{found}, not {class}: {statement}"));
            }
        }
        assert!(wrong.is_empty(), "{name}\n{}", wrong.join("\n"));
    }
}

#[test]
fn unparsed_sql_counts_as_the_worst() {
    for text in [
        "",
        "  -- nothing",
        ";",
        "SELECT 1; SELECT 2",
        "SELECT (",
        "\0",
        "é é",
    ] {
        for dialect in [SqlDialect::Sqlite, SqlDialect::Postgres] {
            assert_eq!(read(text, dialect).class(), SqlClass::Admin, "{text:?}");
        }
    }
}

/// Many rows at once are no attack.
#[test]
fn a_long_list_of_values_is_read() {
    let rows = vec!["(1, 'two', $3)"; 1_000].join(", ");
    let statement = format!("INSERT INTO a VALUES {rows}");
    for dialect in [SqlDialect::Sqlite, SqlDialect::Postgres] {
        assert_eq!(read(&statement, dialect), SqlReading::One(SqlClass::Mutate));
    }
}

/// Attack: text that makes a tree as deep as it is long. It is read on a stack as small as
/// the smallest we run on.
#[test]
fn no_text_takes_the_stack() {
    let repeat = |text: &str| text.repeat(580 / text.split_whitespace().count().max(1));
    let texts = [
        format!("SELECT 1{}", "+1".repeat(30_000)),
        format!("SELECT 1{}", "+1".repeat(590)),
        format!("SELECT a{}", " AND a".repeat(290)),
        format!("SELECT {}1{}", "(".repeat(9_000), ")".repeat(9_000)),
        format!("SELECT {}1", "- ".repeat(590)),
        format!("SELECT {}true", repeat("NOT ")),
        format!("SELECT 1{}", " UNION SELECT 1".repeat(290)),
        format!("SELECT a{}", "::int".repeat(290)),
        format!("SELECT a{}", "[1]".repeat(290)),
        format!("SELECT {}1{}", "f(".repeat(590), ")".repeat(590)),
        format!("SELECT {} END", repeat("CASE WHEN ")),
        format!("SELECT * FROM a{}", " JOIN b ON 1".repeat(190)),
        format!("{}SELECT 1", repeat("EXPLAIN ")),
        format!("WITH {} SELECT 1", "x AS (WITH ".repeat(190)),
        format!("SELECT a{}", repeat(" COLLATE b")),
        format!("SELECT a{}", repeat(" IS NULL")),
        format!("SELECT * FROM {}a{}", "(".repeat(9_000), ")".repeat(9_000)),
        format!("SELECT {}1{}", "ARRAY[".repeat(290), "]".repeat(290)),
    ];
    let reading = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || {
            for text in texts {
                for dialect in [SqlDialect::Sqlite, SqlDialect::Postgres] {
                    let _ = read(&text, dialect);
                }
            }
        });
    reading.unwrap().join().unwrap();
}

#[test]
fn the_seeds_of_the_statement_fuzzer() {
    let seeds = entries("fuzz/seeds/sql");
    assert!(seeds.len() >= 40, "only {} seeds", seeds.len());
    for seed in seeds {
        model::sql::fuzz(&fs::read(seed).unwrap());
    }
}

proptest::proptest! {
    /// What the fuzzer would try first, without one.
    #[test]
    fn any_text_like_a_statement(text in "(SELECT|WITH|INSERT|/\\*|--|;|\\$\\$|'|\"|\\(|\\)|FROM|DELETE|EXPLAIN|x|1|,|\\+|::|\n| ){0,40}") {
        model::sql::fuzz(text.as_bytes());
    }
}
