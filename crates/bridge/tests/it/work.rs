//! Servers that behave: calls, results, progress, questions, restarts, both eras.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge::{
    CallKind, ElicitAnswer, ElicitQuestion, Elicitor, ProgressSink, Server, ServerFault,
    ServerStatus,
};
use futures_util::future::BoxFuture;
use model::config::ServerEra;
use model::record::mask::Masker;
use model::word::Word as _;
use serde_json::json;

use crate::support::{Folder, Lists, call, processes, server, settings, text, tool_call, until};

#[tokio::test]
async fn a_server_starts_with_its_first_call_and_is_reviewed_first() {
    let folder = Folder::new("first");
    let (server, lists) = server(&folder, &["good"]);
    assert_eq!(server.status(), ServerStatus::Stopped);
    assert_eq!(lists.count(), 0);
    let result = call(&server, "echo", json!({"words": "hello"}))
        .await
        .expect("a result");
    assert_eq!(text(&result), "hello");
    assert_eq!(lists.count(), 1);
    let seen = lists.seen.lock().expect("the lists")[0].clone();
    assert_eq!(seen.server.name.as_deref(), Some("test-server"));
    assert_eq!(
        seen.server.instructions.as_deref(),
        Some("A server for tests.")
    );
    assert_eq!(seen.offers.tools.len(), 10);
    assert_eq!(seen.offers.tools[0]["title"], "Echo");
}

#[tokio::test]
async fn what_the_reviewer_refuses_is_not_called() {
    let folder = Folder::new("refused");
    let lists = Arc::new(Lists {
        refuse: true,
        ..Lists::default()
    });
    let server = Server::new(settings(&folder, &["good"]), Arc::clone(&lists) as _);
    let refused = call(&server, "echo", json!({"words": "x"})).await;
    assert!(matches!(refused, Err(ServerFault::Held(_))), "{refused:?}");
    let mark = folder.0.display().to_string();
    until("the process is gone", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_check_between_review_and_call_stops_the_call() {
    let folder = Folder::new("check");
    let (server, lists) = server(&folder, &["good"]);
    let stopped = server
        .call(tool_call("die", json!({})), |_| {
            Err(ServerFault::SignInRequired)
        })
        .await;
    assert_eq!(stopped, Err(ServerFault::SignInRequired));
    assert_eq!(lists.count(), 1);
    assert!(
        call(&server, "echo", json!({"words": "alive"}))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn every_type_of_content_is_relayed() {
    let folder = Folder::new("content");
    let (server, _) = server(&folder, &["good"]);
    let result = call(&server, "picture", json!({})).await.expect("a result");
    let types: Vec<_> = result
        .content
        .iter()
        .map(|block| block["type"].clone())
        .collect();
    assert_eq!(
        types,
        ["text", "image", "audio", "resource", "resource_link"]
    );
    let sum = call(&server, "add", json!({"a": 1, "b": 2}))
        .await
        .expect("a result");
    assert_eq!(sum.structured, Some(json!({"sum": 3.0})));
    let failed = call(&server, "fail", json!({})).await.expect("a result");
    assert!(failed.is_error);
    let refused = call(&server, "refuse", json!({})).await;
    let expected = ServerFault::Refused {
        code: -32000,
        message: "not today".to_owned(),
    };
    assert_eq!(refused, Err(expected));
}

/// A server in JavaScript that cut a text inside an emoji: the rest of it arrives.
#[tokio::test]
async fn an_answer_with_half_a_character_is_read() {
    let folder = Folder::new("half");
    let (server, _) = server(&folder, &["good"]);
    let result = call(&server, "half", json!({})).await.expect("a result");
    assert_eq!(text(&result), "a\u{fffd} \u{1f600}");
}

#[tokio::test]
async fn progress_reaches_the_call_it_belongs_to() {
    let folder = Folder::new("progress");
    let (server, _) = server(&folder, &["good"]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let mut slow = tool_call("slow", json!({"ms": 300}));
    slow.progress = Some(ProgressSink::new(move |done, total, words| {
        let line = (done, total, words.map(str::to_owned));
        kept.lock().expect("told").push(line);
    }));
    server
        .call::<ServerFault>(slow, |_| Ok(()))
        .await
        .expect("a result");
    let told = told.lock().expect("told").clone();
    assert!(told.len() >= 9, "{told:?}");
    assert_eq!(
        told.last(),
        Some(&(10.0, Some(10.0), Some("working".to_owned())))
    );
}

#[derive(Debug)]
struct Blue;

impl Elicitor for Blue {
    fn ask(&self, question: ElicitQuestion) -> BoxFuture<'_, ElicitAnswer> {
        assert_eq!(question.form["message"], "Which colour?");
        Box::pin(async { ElicitAnswer::Accept(Some(json!({"colour": "blue"}))) })
    }
}

#[tokio::test]
async fn a_question_is_answered_by_the_person_behind_the_call() {
    let folder = Folder::new("question");
    let (server, _) = server(&folder, &["good"]);
    let mut asking = tool_call("ask", json!({}));
    asking.elicitor = Some(Arc::new(Blue));
    let answered = server
        .call::<ServerFault>(asking, |_| Ok(()))
        .await
        .expect("a result");
    assert!(text(&answered).contains("blue"), "{answered:?}");
    let declined = call(&server, "ask", json!({})).await.expect("a result");
    assert!(text(&declined).contains("decline"), "{declined:?}");
}

/// Keeps the question, and answers nothing.
#[derive(Debug, Default)]
struct Listens(Mutex<String>);

impl Elicitor for Listens {
    fn ask(&self, question: ElicitQuestion) -> BoxFuture<'_, ElicitAnswer> {
        *self.0.lock().expect("the question") = question.form["message"].to_string();
        Box::pin(async { ElicitAnswer::Decline })
    }
}

/// Attack: a server that says its secret where no result is: in progress and in a question.
#[tokio::test]
async fn secrets_are_masked_in_progress_and_in_questions() {
    let folder = Folder::new("said");
    for (masker, expected) in [
        (
            Masker::new(["a-long-secret-value"]).expect("a masker"),
            "***",
        ),
        // The control: what is no secret comes through.
        (Masker::none(), "a-long-secret-value"),
    ] {
        let mut settings = settings(&folder, &["good"]);
        settings.masker = Arc::new(masker);
        if let bridge::ServerTarget::Command { jail, .. } = &mut settings.target {
            let value = "a-long-secret-value".to_owned();
            jail.environment.insert("TOKEN".to_owned(), value);
        }
        let server = Server::new(settings, Arc::new(Lists::default()));
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let mut slow = tool_call("slow", json!({"ms": 10, "variable": "TOKEN"}));
        slow.progress = Some(ProgressSink::new(move |_, _, words| {
            kept.lock().expect("told").push(words.map(str::to_owned));
        }));
        server
            .call::<ServerFault>(slow, |_| Ok(()))
            .await
            .expect("a result");
        let told = told.lock().expect("told").clone();
        let is_expected = |words: &Option<String>| words.as_deref() == Some(expected);
        assert!(!told.is_empty() && told.iter().all(is_expected), "{told:?}");
        let listens = Arc::new(Listens::default());
        let mut asking = tool_call("ask", json!({"variable": "TOKEN"}));
        asking.elicitor = Some(Arc::clone(&listens) as _);
        server
            .call::<ServerFault>(asking, |_| Ok(()))
            .await
            .expect("a result");
        let asked = listens.0.lock().expect("the question").clone();
        assert!(asked.contains(expected), "{asked}");
    }
}

#[tokio::test]
async fn a_server_of_the_newer_era_is_spoken_to_in_its_own_words() {
    for era in [ServerEra::Modern, ServerEra::Auto] {
        let folder = Folder::new("modern");
        let mut settings = settings(&folder, &["good", "--modern"]);
        settings.era = era;
        let lists = Arc::new(Lists::default());
        let server = Server::new(settings, Arc::clone(&lists) as _);
        let result = call(&server, "echo", json!({"words": "new"}))
            .await
            .expect("a result");
        assert_eq!(text(&result), "new");
        let seen = lists.seen.lock().expect("the lists")[0].clone();
        assert_eq!(seen.server.protocol, "2026-07-28");
    }
}

#[tokio::test]
async fn a_server_that_ended_is_started_again_and_listed_again() {
    let folder = Folder::new("again");
    let (server, lists) = server(&folder, &["good"]);
    let died = call(&server, "die", json!({})).await;
    assert!(matches!(died, Err(ServerFault::Closed(_))), "{died:?}");
    until("the end is noticed", || {
        matches!(server.status(), ServerStatus::Failed(_))
    })
    .await;
    let waits = call(&server, "echo", json!({"words": "x"})).await;
    assert!(
        matches!(waits, Err(ServerFault::Waiting { .. })),
        "{waits:?}"
    );
    assert!(
        server.log().iter().any(|line| line == "told to die"),
        "{:?}",
        server.log()
    );
    server.restart().await;
    let result = call(&server, "echo", json!({"words": "back"}))
        .await
        .expect("a result");
    assert_eq!(text(&result), "back");
    assert_eq!(lists.count(), 2);
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_nothing_of_it_is_left() {
    let folder = Folder::new("idle");
    let mut settings = settings(&folder, &["good"]);
    settings.idle = Duration::from_millis(300);
    let server = Server::new(settings, Arc::new(Lists::default()));
    call(&server, "echo", json!({"words": "x"}))
        .await
        .expect("a result");
    let mark = folder.0.display().to_string();
    until("it is stopped", || server.status() == ServerStatus::Stopped).await;
    until("the process is gone", || processes(&mark).is_empty()).await;
    call(&server, "echo", json!({"words": "x"}))
        .await
        .expect("it starts again");
}

#[tokio::test]
async fn a_dropped_server_leaves_no_process() {
    let folder = Folder::new("dropped");
    let mark = folder.0.display().to_string();
    let (server, _) = server(&folder, &["fork"]);
    call(&server, "echo", json!({"words": "x"}))
        .await
        .expect("a result");
    assert!(!processes(&mark).is_empty(), "the control: it runs");
    drop(server);
    until("the process is gone", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_and_the_next_one_works() {
    let folder = Folder::new("dropped-call");
    let (server, _) = server(&folder, &["good"]);
    let slow = call(&server, "slow", json!({"ms": 1_000}));
    let gave_up = tokio::time::timeout(Duration::from_millis(500), slow).await;
    assert!(gave_up.is_err());
    let result = call(&server, "echo", json!({"words": "next"}))
        .await
        .expect("a result");
    assert_eq!(text(&result), "next");
}

/// In both eras: one tells unasked, the other those that listen.
#[tokio::test]
async fn a_list_that_changes_is_reviewed_again() {
    for (era, words) in [
        (ServerEra::Legacy, &["changes-after-three"][..]),
        (ServerEra::Modern, &["changes-after-three", "--modern"][..]),
    ] {
        let folder = Folder::new(era.word());
        let mut settings = settings(&folder, words);
        settings.era = era;
        let lists = Arc::new(Lists::default());
        let server = Server::new(settings, Arc::clone(&lists) as _);
        for _ in 0..3 {
            call(&server, "echo", json!({"words": "x"}))
                .await
                .expect("a result");
        }
        until("the new list is reviewed", || lists.count() == 2).await;
        let seen = lists.seen.lock().expect("the lists");
        assert_ne!(seen[0].offers.tools[0], seen[1].offers.tools[0]);
    }
}

/// Changes come faster than lists are fetched; the end of the connection does not wait for
/// the next fetch.
#[tokio::test]
async fn a_stop_does_not_wait_for_a_list() {
    let folder = Folder::new("stop-listing");
    let (server, lists) = server(&folder, &["list-flood"]);
    let echo = async || call(&server, "echo", json!({"words": "x"})).await;
    echo().await.expect("a result");
    until("the list is fetched again", || lists.count() == 2).await;
    echo().await.expect("a result");
    let mark = folder.0.display().to_string();
    assert!(!processes(&mark).is_empty());
    let began = std::time::Instant::now();
    server.restart().await;
    until("the process is gone", || processes(&mark).is_empty()).await;
    // The next fetch would be ten seconds after the last.
    assert!(began.elapsed().as_secs() < 6, "{:?}", began.elapsed());
}

/// A person who never answers.
#[derive(Debug, Default)]
struct Silent(std::sync::atomic::AtomicBool);

impl Elicitor for Silent {
    fn ask(&self, _: ElicitQuestion) -> BoxFuture<'_, ElicitAnswer> {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

/// A call that is given up while its person is asked is over, and its server idle.
#[tokio::test]
async fn a_call_that_is_given_up_at_a_question_is_over() {
    let folder = Folder::new("asks-silent");
    let mut settings = settings(&folder, &["good", "--modern"]);
    settings.era = ServerEra::Modern;
    settings.may_ask = true;
    settings.idle = Duration::from_millis(300);
    let server = Server::new(settings, Arc::new(Lists::default()));
    let person = Arc::new(Silent::default());
    let mut asking = tool_call("ask", json!({}));
    asking.elicitor = Some(Arc::clone(&person) as _);
    let is_asked = until("the person is asked", || {
        person.0.load(std::sync::atomic::Ordering::SeqCst)
    });
    tokio::select! {
        answered = server.call::<ServerFault>(asking, |_| Ok(())) => panic!("{answered:?}"),
        () = is_asked => {}
    }
    let mark = folder.0.display().to_string();
    until("the process is gone", || processes(&mark).is_empty()).await;
}

/// A question of a server of the newer era, which ends its answer with it.
#[tokio::test]
async fn a_server_of_the_newer_era_asks_as_well() {
    let folder = Folder::new("asks-modern");
    for (may_ask, expected) in [(true, "blue"), (false, "decline")] {
        let mut settings = settings(&folder, &["good", "--modern"]);
        settings.era = ServerEra::Modern;
        settings.may_ask = may_ask;
        let server = Server::new(settings, Arc::new(Lists::default()));
        let mut asking = tool_call("ask", json!({}));
        asking.elicitor = Some(Arc::new(Blue));
        let answered = server
            .call::<ServerFault>(asking, |_| Ok(()))
            .await
            .expect("a result");
        assert!(text(&answered).contains(expected), "{answered:?}");
    }
}

#[tokio::test]
async fn prompts_and_resources_are_listed_if_wanted_and_read_within_bounds() {
    let folder = Folder::new("items");
    for modern in [false, true] {
        let words: &[&str] = if modern {
            &["good", "--modern"]
        } else {
            &["good"]
        };
        let mut settings = settings(&folder, words);
        settings.era = if modern {
            ServerEra::Modern
        } else {
            ServerEra::Legacy
        };
        let unwanted = Arc::new(Lists::default());
        let server = Server::new(settings.clone(), Arc::clone(&unwanted) as _);
        server.start().await.expect("a list");
        let offers = unwanted.seen.lock().expect("lists")[0].offers.clone();
        assert!(offers.prompts.is_empty() && offers.resources.is_empty());
        settings.prompts = true;
        settings.resources = true;
        let wanted = Arc::new(Lists::default());
        let server = Server::new(settings, Arc::clone(&wanted) as _);
        let mut prompt = tool_call("greet", json!({"who": "Ann"}));
        prompt.kind = CallKind::Prompt;
        let got = server.call::<ServerFault>(prompt, |_| Ok(())).await;
        let got = got.expect("a prompt").structured.expect("a structure");
        assert_eq!(
            got["messages"][0]["content"],
            json!({"type": "text", "text": "Greet Ann.[31m"})
        );
        let mut read = tool_call("", json!({"uri": "test://item/7"}));
        read.kind = CallKind::Resource;
        let got = server.call::<ServerFault>(read, |_| Ok(())).await;
        let got = got.expect("a resource").structured.expect("a structure");
        assert_eq!(got["contents"][0]["text"], "item 7");
        assert_eq!(got["contents"][0].get("_meta"), None);
        let offers = wanted.seen.lock().expect("lists")[0].offers.clone();
        assert_eq!(
            (
                offers.prompts.len(),
                offers.resources.len(),
                offers.templates.len()
            ),
            (1, 2, 1)
        );
    }
}
