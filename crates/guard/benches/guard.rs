//! What a judgement costs. `cargo xtask bench guard` runs it.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should stop")]

use std::fmt::Write as _;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use guard::{Preset, PresetLevel};

fn main() {
    divan::main();
}

/// A script of as many bytes, of the kind agents write.
fn script(bytes: usize) -> String {
    let mut text = String::new();
    let mut index = 0;
    while text.len() + 700 < bytes {
        let _ = write!(
            text,
            r#"// Step {index}: orders of active users, by city.
const users{index} = await callTool('users:list', {{ limit: 100, offset: {index} }});
const active{index} = users{index}.filter((user) => user.active && user.score > {index});
const byCity{index} = {{}};
for (const user of active{index}) {{
  const city = user.city ?? 'unknown';
  byCity{index}[city] = (byCity{index}[city] ?? 0) + Math.round(user.score * 100) / 100;
  if (byCity{index}[city] > 1000) {{
    console.log(`city ${{city}} has ${{byCity{index}[city]}} points`, {{ step: {index} }});
  }}
}}
const names{index} = Object.keys(byCity{index}).sort((a, b) => byCity{index}[b] - byCity{index}[a]);
"#
        );
        index += 1;
    }
    text.push_str("return users0.length;");
    text
}

fn preset() -> Preset {
    let mut preset = Preset::agent_script(PresetLevel::Standard);
    // So many bytes in lines of ordinary length are a few more lines than allowed.
    preset.limits.lines_max = 5_000;
    preset
}

/// Every layer that says yes or no.
#[divan::bench(args = [5, 50])]
fn check_kilobytes(bencher: Bencher<'_, '_>, kilobytes: usize) {
    let (text, preset) = (script(kilobytes * 1024), preset());
    let report = guard::check(&text, &preset);
    assert!(report.issues.is_empty(), "{:?}", report.issues.first());
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| guard::check(black_box(&text), &preset));
}

/// The same, and the code that runs.
#[divan::bench(args = [5, 50])]
fn prepare_kilobytes(bencher: Bencher<'_, '_>, kilobytes: usize) {
    let (text, preset) = (script(kilobytes * 1024), preset());
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| guard::prepare(black_box(&text), &preset).unwrap());
}

/// What a refusal costs when it is for size or depth.
#[divan::bench(args = ["size", "brackets", "templates"])]
fn refuse(bencher: Bencher<'_, '_>, kind: &str) {
    let text = match kind {
        "size" => "a;".repeat(50 << 20),
        "brackets" => "(".repeat(5_000),
        _ => "`${".repeat(16_000),
    };
    let preset = preset();
    assert!(!guard::check(&text, &preset).valid);
    bencher.bench(|| guard::check(black_box(&text), &preset));
}
