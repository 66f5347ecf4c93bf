//! What a clone through the route costs over git's own: a real `git http-backend` behind TLS
//! on loopback, a repository of about 10 MB, `gitClone` and `git clone` in turn. `cargo xtask
//! bench clone` runs it. The last line is one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use model::record::audit::Status;
use serde_json::json;
use toolbox_forge::{FORGE, Forge};
use world::{Home, World};

#[path = "../tests/it/catalog_lab.rs"]
#[expect(dead_code, reason = "tests need more of the lab")]
mod catalog_lab;
#[path = "../tests/it/toolbox_forge.rs"]
#[expect(dead_code, reason = "tests need more of the forge")]
mod toolbox_forge;
#[path = "../tests/it/world.rs"]
#[expect(dead_code, reason = "tests need more of the world")]
mod world;

const ROUNDS: usize = 9;
/// Files of the repository, each of a megabyte that compresses by a quarter.
const FILES: usize = 14;

fn main() {
    // `cargo test` runs every bench once, with this.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let forge = Forge::plain().await;
    let texts: Vec<(String, String)> = (0..FILES)
        .map(|number| (format!("file-{number}"), noise(number)))
        .collect();
    let files: Vec<(&str, &str)> = texts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    forge.repository("large", &files);
    let world = forge.world(&format!(
        "[toolbox]\nenabled = [\"git\"]\nhosts = [\"{FORGE}\"]\n\
         [[rule]]\nid = \"all\"\neffect = \"allow\"\n"
    ));
    let aside = Home::new();
    let (mut direct, mut routed) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let name = format!("clone-{round}");
        let start = Instant::now();
        clone_directly(&forge, &aside.path, &name);
        let by_git = start.elapsed();
        let start = Instant::now();
        let bytes = clone_by_route(&world, &name).await;
        let by_us = start.elapsed();
        std::fs::remove_dir_all(aside.path.join(&name)).unwrap();
        std::fs::remove_dir_all(world.home.path.join("workspace").join(&name)).unwrap();
        // The first round warms up.
        if round == 0 {
            println!("{} MB on the wire", bytes / 1_000_000);
            continue;
        }
        direct.push(by_git);
        routed.push(by_us);
    }
    let (direct, routed) = (median(direct), median(routed));
    println!("git {direct:?}, gitClone {routed:?}");
    println!(
        "{}",
        json!({"clone_over_git": routed.as_secs_f64() / direct.as_secs_f64()})
    );
}

/// A megabyte of letters without a pattern.
fn noise(number: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let seed = u64::try_from(number).unwrap() + 1;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut text = String::with_capacity(1 << 20);
    while text.len() < 1 << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let index = usize::try_from(state >> 58).unwrap();
        text.push(char::from(LETTERS[index]));
        if text.len() % 80 == 79 {
            text.push('\n');
        }
    }
    text
}

async fn clone_by_route(world: &World, name: &str) -> u64 {
    let url = format!("https://{FORGE}/large.git");
    let outcome = world
        .call("gitClone", json!({"url": url, "directory": name}))
        .await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    outcome.value.unwrap()["bytesReceived"].as_u64().unwrap()
}

/// The same clone by git alone: the same commits, checks of objects and checkout.
fn clone_directly(forge: &Forge, folder: &Path, name: &str) {
    let port = forge.port();
    let resolve = format!("http.curloptResolve={FORGE}:{port}:127.0.0.1");
    let url = format!("https://{FORGE}:{port}/large.git");
    let ran = Command::new("git")
        .args(["-c", "http.sslVerify=false", "-c", "http.proxy=", "-c"])
        .args([&resolve, "-c", "transfer.fsckObjects=true", "clone", "-q"])
        .args(["--single-branch", "--no-tags", "--depth=1", &url, name])
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("https_proxy")
        .env_remove("HTTPS_PROXY")
        .env_remove("ALL_PROXY")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
