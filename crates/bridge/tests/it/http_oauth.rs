//! Signing in, against an issuer of our own on loopback. Each attack has a control
//! that succeeds.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bridge::ServerFault;
use bridge::http::{HttpEnd, end_of};
use bridge::oauth::{
    ClientCredentials, LoginSettings, OAuthFault, SignedIn, TokenFileFault, TokenText, login,
};
use host::client::{ClientMethod, ClientRequest, HttpClient};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::http::{call, open, server_at};
use crate::http_lab::{Lab, Wire};
use crate::support::{self, Folder};

struct World {
    lab: Lab,
    wire: Arc<Wire>,
    home: Folder,
}

impl World {
    async fn new(name: &str) -> World {
        World {
            lab: Lab::start().await,
            wire: Arc::default(),
            home: Folder::new(name),
        }
    }

    fn file(&self) -> PathBuf {
        self.home.0.join("server-tokens/lab.json")
    }

    fn kept(&self) -> Value {
        let text = fs::read_to_string(self.file()).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["tokens"][0].clone()
    }

    /// Changes what is kept.
    fn set(&self, name: &str, value: Value) {
        let text = fs::read_to_string(self.file()).unwrap();
        let mut file: Value = serde_json::from_str(&text).unwrap();
        file["tokens"][0][name] = value;
        fs::write(self.file(), file.to_string()).unwrap();
    }

    async fn sign_in(&self) -> Result<SignedIn, OAuthFault> {
        self.sign_in_with(|_| {}).await
    }

    async fn sign_in_with(
        &self,
        change: impl FnOnce(&mut LoginSettings),
    ) -> Result<SignedIn, OAuthFault> {
        let mut settings = self.lab.login(&self.wire, &self.home.0);
        change(&mut settings);
        let browser = self.lab.client(&self.wire);
        let signing = login(settings, |page| {
            tokio::spawn(agree(browser, page.to_owned()));
        });
        timeout(Duration::from_secs(30), signing).await.unwrap()
    }
}

async fn get(browser: &HttpClient, url: &str) -> (u16, String) {
    let request = ClientRequest::new(ClientMethod::Get, url);
    let reply = browser.send(request).await.unwrap();
    let status = reply.status.as_u16();
    let body = reply.body.read(1 << 16, Duration::from_secs(5)).await;
    (status, String::from_utf8(body.unwrap()).unwrap())
}

/// A person who agrees; before that, another program knocks.
async fn agree(browser: HttpClient, page: String) {
    let (_, back) = get(&browser, &page).await;
    let (before, _) = back.split_once('?').unwrap();
    let wrong = format!("{before}?code=stolen&state=guessed");
    assert_eq!(get(&browser, &wrong).await.0, 404);
    let (status, words) = get(&browser, &back).await;
    assert_eq!(status, 200, "{words}");
}

#[tokio::test]
async fn a_person_signs_in_and_calls_are_made_with_the_token() {
    let world = World::new("sign-in").await;
    world.lab.book().is_protected = true;
    let mut settings = world.lab.settings(&world.wire);
    settings.tokens = Some(world.lab.source(&world.wire, &world.home.0));
    let error = open(settings.clone()).await.unwrap_err();
    assert_eq!(end_of(&error), HttpEnd::SignInRequired);

    let signed = world.sign_in().await.unwrap();
    assert_eq!(signed.issuer, world.lab.url(""));
    assert!(signed.is_renewable);
    let running = open(settings.clone()).await.unwrap();
    call(&running, "echo").await.unwrap();

    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.file()), 0o600);
    assert_eq!(mode(world.file().parent().unwrap()), 0o700);
    let source = world.lab.source(&world.wire, &world.home.0);
    let token = source.token(None).await.unwrap().unwrap();
    for shown in [
        format!("{source:?}"),
        format!("{token:?}"),
        format!("{settings:?}"),
    ] {
        assert!(!shown.contains("at-") && !shown.contains("rt-"), "{shown}");
    }
    assert!(world.wire.strangers().is_empty());
}

/// Attack: a server that says the token it was called with, to a caller who has none.
#[tokio::test]
async fn a_server_that_says_its_token_is_not_believed_aloud() {
    let world = World::new("confess").await;
    world.lab.book().is_protected = true;
    world.sign_in().await.unwrap();
    let mut settings = world.lab.settings(&world.wire);
    settings.tokens = Some(world.lab.source(&world.wire, &world.home.0));
    let (server, _) = server_at(settings);
    let said = support::call(&server, "confess", Value::Null)
        .await
        .unwrap();
    assert_eq!(support::text(&said), "Bearer ***");
    // Attack: while it answers, the tokens cannot be read any more. Nothing is passed on.
    world.lab.book().spoil = Some(world.file());
    let fault = support::call(&server, "confess", Value::Null).await;
    assert!(
        matches!(&fault, Err(ServerFault::Start(why)) if why.contains("masked")),
        "{fault:?}"
    );
    world.lab.book().spoil = None;
    // The control: without a token to hide, its words come through.
    world.lab.book().is_protected = false;
    let (open, _) = server_at(world.lab.settings(&world.wire));
    let said = support::call(&open, "confess", Value::Null).await.unwrap();
    assert_eq!(support::text(&said), "none");
}

#[tokio::test]
async fn a_token_is_renewed_when_it_ends_or_is_refused() {
    let world = World::new("renew").await;
    world.lab.book().is_protected = true;
    world.sign_in().await.unwrap();
    let source = world.lab.source(&world.wire, &world.home.0);
    // Near its end.
    world.set("expires_at", json!(1));
    source.token(None).await.unwrap().unwrap();
    assert_eq!(world.kept()["access"], "at-2");
    assert_eq!(world.kept()["refresh"], "rt-2");
    // Still good: the same.
    source.token(None).await.unwrap().unwrap();
    assert_eq!(world.lab.book().refresh_count, 1);
    // Refused by the server in the middle of a session.
    let mut settings = world.lab.settings(&world.wire);
    settings.tokens = Some(source);
    let running = open(settings).await.unwrap();
    world.set("access", json!("at-old"));
    call(&running, "echo").await.unwrap();
    assert_eq!(world.kept()["access"], "at-3");
    assert_eq!(world.lab.book().refresh_count, 2);
}

#[tokio::test]
async fn a_refused_renewal_clears_what_was_tried_and_nothing_newer() {
    let world = World::new("invalid-grant").await;
    world.sign_in().await.unwrap();
    let source = world.lab.source(&world.wire, &world.home.0);
    let old = source.token(None).await.unwrap().unwrap();
    // Another process has renewed meanwhile: that is used, and no renewal is made.
    world.set("generation", json!(7));
    world.set("access", json!("at-other"));
    source.token(Some(&old)).await.unwrap().unwrap();
    assert_eq!(world.lab.book().refresh_count, 0);
    assert_eq!(world.kept()["access"], "at-other");
    // The issuer does not know the refresh token any more.
    world.set("refresh", json!("rt-stolen"));
    world.set("expires_at", json!(1));
    let fault = source.token(None).await.unwrap_err();
    assert!(fault.is_sign_in_required(), "{fault}");
    assert_eq!(world.kept()["access"], Value::Null);
    assert_eq!(world.kept()["refresh"], Value::Null);
    assert!(source.token(None).await.unwrap_err().is_sign_in_required());
    assert_eq!(world.lab.book().reuse_count, 1, "tried once, not again");
    // And a new sign-in makes it good again.
    world.sign_in().await.unwrap();
    source.token(None).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_issuer_out_of_reach_clears_nothing() {
    let world = World::new("unreachable").await;
    world.sign_in().await.unwrap();
    let endpoint = world.kept()["token_endpoint"].clone();
    world.set("expires_at", json!(1));
    world.set("token_endpoint", json!("http://127.0.0.1:1/token"));
    let source = world.lab.source(&world.wire, &world.home.0);
    let fault = source.token(None).await.unwrap_err();
    assert!(matches!(fault, OAuthFault::Request { .. }), "{fault}");
    assert_eq!(world.kept()["refresh"], "rt-1");
    world.set("token_endpoint", endpoint);
    source.token(None).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_renewal_goes_on_when_nobody_waits_for_it() {
    let world = World::new("dropped").await;
    world.sign_in().await.unwrap();
    world.set("expires_at", json!(1));
    let gate = Arc::new(Semaphore::new(0));
    world.lab.book().gate = Some(Arc::clone(&gate));
    let source = world.lab.source(&world.wire, &world.home.0);
    let dropped = timeout(Duration::from_millis(300), source.token(None)).await;
    assert!(dropped.is_err());
    gate.add_permits(10);
    source.token(None).await.unwrap().unwrap();
    let book = world.lab.book();
    assert_eq!((book.refresh_count, book.reuse_count), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_never_use_a_refresh_token_twice() {
    let world = World::new("processes").await;
    world.sign_in().await.unwrap();
    let mut children: Vec<std::process::Child> = (0..4)
        .map(|_| {
            std::process::Command::new(env!("CARGO_BIN_EXE_bridge-test-tokens"))
                .arg(&world.home.0)
                .arg(world.lab.url("/mcp"))
                .arg("12")
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let waiting = tokio::task::spawn_blocking(move || {
        children
            .iter_mut()
            .all(|child| child.wait().unwrap().success())
    });
    let ended = timeout(Duration::from_secs(120), waiting).await;
    assert!(ended.unwrap().unwrap(), "every process got its tokens");
    let (refresh_count, reuse_count) = {
        let book = world.lab.book();
        (book.refresh_count, book.reuse_count)
    };
    assert_eq!(reuse_count, 0);
    // Each round needs one, and one that another made is as good.
    assert!((12..=48).contains(&refresh_count), "{refresh_count}");
    assert_eq!(world.kept()["refresh"], format!("rt-{}", refresh_count + 1));
}

#[tokio::test]
async fn answers_of_another_issuer_are_refused() {
    for (name, value) in [
        ("issuer", json!("https://other.acme.com")),
        ("resource", json!("https://other.acme.com/mcp")),
    ] {
        let world = World::new("mix-up").await;
        world.lab.book().is_protected = true;
        world.lab.book().metadata.insert(name, value);
        let fault = world.sign_in().await.unwrap_err();
        assert!(matches!(fault, OAuthFault::Mismatch(_)), "{name}: {fault}");
        assert!(!world.file().exists());
    }
    for issuer in ["https://other.acme.com", "none"] {
        let world = World::new("mix-up-answer").await;
        world.lab.book().is_protected = true;
        world.lab.book().answer_issuer = Some(issuer.to_owned());
        let fault = world.sign_in().await.unwrap_err();
        assert!(
            matches!(fault, OAuthFault::Mismatch(_)),
            "{issuer}: {fault}"
        );
        assert!(!world.file().exists());
    }
}

#[tokio::test]
async fn a_weak_issuer_is_refused() {
    for (name, value, expected) in [
        (
            "code_challenge_methods_supported",
            json!(["plain"]),
            "does not support PKCE",
        ),
        (
            "token_endpoint",
            json!("http://mcp.acme.com/token"),
            "is not https",
        ),
        (
            "token_endpoint",
            json!("http://169.254.169.254/token"),
            "is not https",
        ),
        (
            "authorization_servers",
            json!(["http://mcp.acme.com"]),
            "is not https",
        ),
        ("registration_endpoint", Value::Null, "registers no clients"),
    ] {
        let world = World::new("weak").await;
        world.lab.book().is_protected = true;
        world.lab.book().metadata.insert(name, value);
        let fault = world.sign_in().await.unwrap_err().to_string();
        assert!(fault.contains(expected), "{name}: {fault}");
        assert!(world.wire.strangers().is_empty());
    }
    // Discovery goes through the guarded client too.
    let world = World::new("inside").await;
    world.lab.book().is_protected = true;
    let inside = json!(["https://mixed.acme.com"]);
    world
        .lab
        .book()
        .metadata
        .insert("authorization_servers", inside);
    let fault = world.sign_in().await.unwrap_err();
    assert!(matches!(fault, OAuthFault::Request { .. }), "{fault}");
    assert!(world.wire.strangers().is_empty());
}

#[tokio::test]
async fn a_person_who_does_not_come_is_not_waited_for() {
    let world = World::new("late").await;
    let mut settings = world.lab.login(&world.wire, &world.home.0);
    settings.wait = Duration::from_millis(200);
    let mut shown = String::new();
    let fault = login(settings, |page| shown = page.to_owned()).await;
    assert!(matches!(fault, Err(OAuthFault::TimedOut(_))));
    assert!(shown.starts_with(&world.lab.url("/authorize?")), "{shown}");
}

#[tokio::test]
async fn a_client_with_credentials_needs_no_person() {
    let world = World::new("credentials").await;
    world.lab.book().is_protected = true;
    let credentials = |secret: &str| ClientCredentials {
        id: "robot".to_owned(),
        secret: TokenText::new(secret),
        scopes: Vec::new(),
    };
    let source = || world.lab.source(&world.wire, &world.home.0);
    let wrong = source().with_credentials(credentials("guessed"));
    let fault = wrong.token(None).await.unwrap_err();
    assert!(matches!(fault, OAuthFault::Refused(_)), "{fault}");
    let mut settings = world.lab.settings(&world.wire);
    settings.tokens = Some(source().with_credentials(credentials("s3cret")));
    let running = open(settings).await.unwrap();
    call(&running, "echo").await.unwrap();
    world.set("expires_at", json!(1));
    call(&running, "echo").await.unwrap();
    assert_eq!(world.lab.book().generation, 2);
    let text = fs::read_to_string(world.file()).unwrap();
    assert!(!text.contains("s3cret"));
}

#[tokio::test]
async fn a_file_that_others_could_have_touched_is_refused() {
    let world = World::new("foreign").await;
    world.sign_in().await.unwrap();
    let source = world.lab.source(&world.wire, &world.home.0);
    let file = world.file();
    let folder = file.parent().unwrap().to_owned();
    let mode = |path: &PathBuf, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let is_foreign = |fault| matches!(fault, OAuthFault::File(TokenFileFault::Foreign(_)));
    for (path, loose, tight) in [(&file, 0o644, 0o600), (&folder, 0o755, 0o700)] {
        mode(path, loose);
        assert!(is_foreign(source.token(None).await.unwrap_err()));
        mode(path, tight);
        source.token(None).await.unwrap().unwrap();
    }
    let real = world.home.0.join("real");
    for path in [&file, &folder] {
        fs::rename(path, &real).unwrap();
        symlink(&real, path).unwrap();
        assert!(is_foreign(source.token(None).await.unwrap_err()));
        fs::remove_file(path).unwrap();
        fs::rename(&real, path).unwrap();
        source.token(None).await.unwrap().unwrap();
    }
    fs::write(&file, "{").unwrap();
    let fault = source.token(None).await.unwrap_err();
    assert!(matches!(fault, OAuthFault::File(TokenFileFault::Spoilt(_))));
}
