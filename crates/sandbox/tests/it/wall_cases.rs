//! The hostile scripts of `cases/attack/sandbox` through the pool: both walls,
//! several at a time. Each ends by its name, the parent is unharmed, no worker
//! is lost, and the next call is right.

use std::fs;
use std::path::Path;

use futures_util::StreamExt;
use sandbox::job::{Ended, HostAnswer, HostRequest, Job, Payload};
use sandbox::pool::{HostCalls, Pool, Sharing};

use crate::cell_attack::{cases, code, read_limits};
use crate::cell_run;
use crate::wall_help::{pool, real, settings, settle};

/// Answers like the host of wall one's own tests.
struct Host;

impl HostCalls for Host {
    fn call<'a>(
        &'a self,
        request: HostRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>> {
        let bytes = |json: &str, bytes| {
            HostAnswer::Value(Payload {
                json: json.to_owned(),
                bytes,
            })
        };
        let answer = match request.operation.as_str() {
            "echo" => Some(HostAnswer::Value(request.payload)),
            "bytes" => Some(bytes("7", vec![1, 2, 255])),
            "big" => Some(bytes("1", vec![0; 1 << 20])),
            "fail" => Some(HostAnswer::Error(
                r#"{"kind":"SECURITY","reason":"host.denied","helper":"fetch","message":"no"}"#
                    .to_owned(),
            )),
            _ => None,
        };
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

async fn run_case(pool: &Pool, case: &Path) -> Vec<String> {
    let name = case
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let script = fs::read_to_string(case.join("script.js")).expect("script.js");
    let expected = fs::read_to_string(case.join("expect.txt")).expect("expect.txt");
    let limits = read_limits(&case.join("limits.txt"));
    let job = Job {
        limits,
        ..cell_run::job(&script)
    };
    let mut wrong = Vec::new();
    match pool.run("tester", job, &Host).await {
        Ok(run) if code(&run.report.ended) == expected.trim_end() => {}
        Ok(run) => wrong.push(format!(
            "{name}: expected {}, found {}",
            expected.trim_end(),
            code(&run.report.ended)
        )),
        Err(error) => wrong.push(format!("{name}: {error}")),
    }
    let next = cell_run::job("return [typeof evil, [1, 2].map((x) => x * 2)]");
    match pool.run("tester", next, &Host).await {
        Ok(run) if run.report.ended == Ended::Value(r#"["undefined",[2,4]]"#.to_owned()) => {}
        other => wrong.push(format!("{name}: the next call gave {other:?}")),
    }
    wrong
}

#[tokio::test]
async fn every_hostile_script_ends_by_name_behind_both_walls() {
    let mut settings = settings(real(), Sharing::Shared);
    settings.workers = 2;
    settings.deadline_grace_ms = 5_000;
    let pool = pool(settings).await;
    let wrong: Vec<String> = futures_util::stream::iter(cases())
        .map(|case| {
            let pool = &pool;
            async move { run_case(pool, &case).await }
        })
        .buffer_unordered(4)
        .collect::<Vec<_>>()
        .await
        .concat();
    let status = pool.status();
    assert!(
        wrong.is_empty(),
        "{}\nlast loss: {:?}",
        wrong.join("\n"),
        status.last_loss
    );
    assert_eq!(status.lost_count, 0, "{:?}", status.last_loss);
    settle(&pool).await;
}
