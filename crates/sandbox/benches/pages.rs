//! Where the memory of a parked sandbox is: which pages of its linear memory a call
//! has made its own, and what the host keeps beside them.
//!
//! `cargo bench -p ringfence-sandbox --bench pages`. Takes no time of anything, so a
//! busy machine does not matter.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench ends on the first surprise and prints what it measured"
)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use sandbox::cell::{Cell, CellSettings, CellStep, Cells};
use sandbox::job::{CallId, Job, JobLimits};

/// How many sandboxes are held; a page counts when most of them have it.
const HELD: u32 = 200;

const PAGE_BYTES: usize = 4096;

/// The pagemap's bits for a page that is there, and for one that is the file's.
const PRESENT: u64 = 1 << 63;
const SHARED: u64 = 1 << 61;

fn main() {
    for (name, body, globals) in [
        ("queued", "await probe.queued('never')", "{}"),
        ("direct", "probe.direct('never')", "{}"),
        (
            "plain",
            "await new Promise(() => probe.queued('never'))",
            r#"{"a":1,"b":2}"#,
        ),
    ] {
        let cells = Cells::load(&CellSettings {
            live_max: HELD,
            ..CellSettings::default()
        })
        .unwrap();
        cells.start_ticker().unwrap();
        let before = rollup();
        let held = hold(&cells, body, globals);
        let after = rollup();
        println!(
            "{name}: {:.1} KB each, of them in linear memory:",
            (after - before) as f64 / f64::from(HELD)
        );
        show(&slots());
        drop(held);
    }
}

fn hold(cells: &Cells, body: &str, globals: &str) -> Vec<Cell> {
    let mut out = Vec::new();
    (0..HELD)
        .map(|id| {
            let mut cell = cells.start(CallId(u64::from(id)), job(body, globals));
            while let CellStep::Ready = cell.step(&mut out) {}
            cell
        })
        .collect()
}

/// Pages of each slot that are its own: offset in memory, how many slots have it.
fn slots() -> BTreeMap<usize, u32> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let pagemap = File::open("/proc/self/pagemap").unwrap();
    let parts: Vec<Part> = maps.lines().map(Part::read).collect();
    let mut own = BTreeMap::new();
    for (index, image) in parts.iter().enumerate().filter(|(_, part)| part.is_image) {
        // Around the image lie the zeroes it leaves out, as mappings of their own.
        let before = &parts[index - 1];
        let after = &parts[index + 1];
        let start = if before.open && before.end == image.start {
            before.start
        } else {
            image.start
        };
        let end = if after.open && after.start == image.end {
            after.end
        } else {
            image.end
        };
        for address in (start..end).step_by(PAGE_BYTES) {
            let mut entry = [0; 8];
            pagemap
                .read_exact_at(&mut entry, (address / PAGE_BYTES * 8) as u64)
                .unwrap();
            let entry = u64::from_le_bytes(entry);
            if entry & PRESENT != 0 && entry & SHARED == 0 {
                *own.entry(address - start).or_insert(0) += 1;
            }
        }
    }
    own
}

/// One line of the process's map.
struct Part {
    start: usize,
    end: usize,
    open: bool,
    is_image: bool,
}

impl Part {
    fn read(line: &str) -> Part {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (start, end) = fields[0].split_once('-').unwrap();
        let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
        Part {
            start: hex(start),
            end: hex(end),
            open: fields[1].starts_with("rw"),
            is_image: line.contains("wasm-memory-image"),
        }
    }
}

fn show(own: &BTreeMap<usize, u32>) {
    let most = own.iter().filter(|(_, count)| **count > HELD / 2);
    let pages: Vec<String> = most.map(|(offset, _)| format!("{offset:#x}")).collect();
    println!("  {} pages: {}", pages.len(), pages.join(" "));
}

fn rollup() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    text.lines()
        .filter(|line| line.starts_with("Private_"))
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

fn job(body: &str, globals: &str) -> Job {
    Job {
        body: body.to_owned(),
        globals: globals.to_owned(),
        declared: Vec::new(),
        powers: vec!["probe".to_owned()],
        limits: JobLimits {
            work_max: 1_000_000_000,
            cpu_ms_max: 60_000,
            wall_ms_max: 600_000,
            memory_bytes_max: 64 << 20,
            result_bytes_max: 1 << 20,
            result_depth_max: 64,
            console_lines_max: 100,
            console_bytes_max: 1 << 16,
            host_calls_max: 1_000,
            host_outstanding_max: 100,
            payload_bytes_max: 1 << 20,
        },
        seed: 7,
        now_ms: 0,
    }
}
