//! Calls that are made together: order where order is meaning, and nobody's failure
//! is anybody else's.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use engine::Observer;
use engine::approve::{ApprovalAnswer, ApprovalScope, Approver, Question};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::limits;
use model::record::audit::Status;
use model::record::mask::Masked;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::world::{Home, World, document};

/// Agrees once three are asked at the same time.
#[derive(Debug, Default)]
struct Together {
    asking: AtomicUsize,
    met: watch::Sender<bool>,
}

/// Somebody waits for an answer.
struct Asked<'a>(&'a Together);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Approver for Together {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(async {
            let before = self.asking.fetch_add(1, Ordering::SeqCst);
            let _asked = Asked(self);
            if before + 1 == 3 {
                self.met.send_replace(true);
            }
            let _ = self.met.subscribe().wait_for(|met| *met).await;
            ApprovalAnswer::Approved(ApprovalScope::Once)
        })
    }
}

fn numbered(name: &str, code: &str, more: &Value) -> Value {
    let mut all = json!({"params": [
        {"name": "n", "type": "NUMBER", "required": true, "testValue": "1"}]});
    let members = all.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    document(name, code, all)
}

fn request(tool: &str, n: usize) -> CallRequest {
    CallRequest::new(Caller::named("ann"), Origin::Script, tool, json!({"n": n}))
}

async fn values(world: &World, requests: Vec<CallRequest>) -> Vec<Option<Value>> {
    let outcomes = world.engine.call_many(requests).await.unwrap();
    let outcomes = outcomes.into_iter().map(Masked::into_inner);
    outcomes.map(|outcome| outcome.value).collect()
}

/// Three calls that each wait until all three were asked about: only calls at the
/// same time get to an end.
async fn runs_together(config: &str, more: Value) -> bool {
    let home = Home::new();
    let wait = "[approvals]\nwait_seconds = 1\n";
    home.file("ringfence.toml", &format!("{wait}{config}"));
    let world = World::with(home, |_| ());
    let mut asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    let members = asks.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    world.published(&numbered("asks", "return n", &asks)).await;
    let approver: Arc<dyn Approver> = Arc::new(Together::default());
    let asking = |n| CallRequest {
        approver: Some(Arc::clone(&approver)),
        ..request("asks", n)
    };
    let outcomes = world.engine.call_many((0..3).map(asking).collect()).await;
    let outcomes = outcomes.unwrap().into_iter().map(Masked::into_inner);
    let statuses: Vec<_> = outcomes.map(|outcome| outcome.status).collect();
    assert!(
        statuses.iter().all(|status| *status == statuses[0]),
        "{statuses:?}"
    );
    statuses[0] == Status::Done
}

#[tokio::test]
async fn reads_run_together_effects_do_not_unless_the_operator_wants_it() {
    let writes = || json!({"sandboxOverrides": {"fileWrite": true}});
    let declares = || json!({"x-ringfence-actions": ["comms:external"]});
    let unknown = || json!({"x-ringfence-actions": ["what:ever"]});
    assert!(runs_together("", json!({})).await);
    assert!(runs_together("", json!({"x-ringfence-actions": ["db:query"]})).await);
    assert!(!runs_together("", writes()).await);
    assert!(!runs_together("", declares()).await);
    assert!(!runs_together("", unknown()).await);
    assert!(runs_together("[calls]\nconcurrent = true\n", writes()).await);
}

/// A write, then a read of what it wrote, then a write, then two reads.
#[tokio::test]
async fn effects_keep_their_order_and_results_their_places() {
    let steps: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&steps);
    let world = World::with(Home::new(), |settings| {
        settings.observer = Some(Observer::new(move |step| {
            noted.lock().unwrap().push(step.to_owned());
        }));
    });
    let write = "safety.fs.writeText('n.txt', String(n)); return 'w' + n";
    let writes = json!({"sandboxOverrides": {"fileWrite": true}});
    world.published(&numbered("write", write, &writes)).await;
    let reads = json!({"sandboxOverrides": {"fileRead": true}});
    let read = "try { return n + ' sees ' + safety.fs.readText('n.txt') } catch (e) { return '-' }";
    world.published(&numbered("read", read, &reads)).await;
    steps.lock().unwrap().clear();
    let requests = vec![
        request("write", 1),
        request("read", 2),
        request("write", 3),
        request("read", 4),
        request("read", 5),
    ];
    let expected = ["w1", "2 sees 1", "w3", "4 sees 3", "5 sees 3"];
    let expected: Vec<_> = expected.iter().map(|text| Some(json!(text))).collect();
    assert_eq!(values(&world, requests).await, expected);
    let steps = steps.lock().unwrap();
    let ends = steps
        .iter()
        .filter(|step| *step == "opened" || *step == "closed");
    let ends: Vec<_> = ends.map(String::as_str).collect();
    let (alone, together) = ends.split_at(6);
    assert_eq!(alone, ["opened", "closed"].repeat(3));
    assert_eq!(together.len(), 4);
    drop(steps);
    world.assert_whole();
}

#[tokio::test]
async fn a_failure_stops_no_other_call_and_too_many_calls_are_refused() {
    let world = World::new();
    let throws = "if (n % 2) throw new Error('odd'); return n";
    world
        .published(&numbered("even", "return n", &json!({})))
        .await;
    let more = json!({"sandboxOverrides": {"fileWrite": true}, "params": [
        {"name": "n", "type": "NUMBER", "required": true, "testValue": "2"}]});
    world.published(&document("throws", throws, more)).await;
    let requests = vec![
        request("throws", 1),
        request("nothing", 2),
        request("even", 3),
        request("throws", 4),
        CallRequest {
            arguments: json!({"m": 1}),
            ..request("even", 0)
        },
        request("even", 6),
    ];
    let expected = [
        None,
        None,
        Some(json!(3)),
        Some(json!(4)),
        None,
        Some(json!(6)),
    ];
    assert_eq!(values(&world, requests).await, expected);
    let most = limits::CALLS_TOGETHER_MAX;
    let before = world.engine.store().audit().head().unwrap();
    let requests = (0..=most).map(|n| request("even", n)).collect();
    let fault = world.engine.call_many(requests).await.unwrap_err();
    let expected = "65 calls were made together, at most 64 are allowed; no call ran";
    assert_eq!(fault.to_string(), expected);
    assert_eq!(world.engine.store().audit().head().unwrap(), before);
    assert_eq!(values(&world, Vec::new()).await, []);
    // As many as may be, more than run at one time, all in their places.
    let many: Vec<_> = (0..limits::CALLS_AT_ONCE_MAX * 2 + 3).collect();
    let requests = many.iter().map(|n| request("even", *n)).collect();
    let expected: Vec<_> = many.iter().map(|n| Some(json!(n))).collect();
    assert_eq!(values(&world, requests).await, expected);
}
