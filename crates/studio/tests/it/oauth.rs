//! Signing in with an issuer's account: who gets which role, and every way to get one that is
//! not one's own.

use std::os::unix::fs::PermissionsExt as _;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::issuer::{Lab, Sign, parameters};
use crate::world::{Answer, Browser, World, studio};

const BEGIN: &str = "/api/v1/session/oauth";
const CALLBACK: &str = "/api/v1/session/oauth/callback";

fn world_of(lab: &Lab) -> World {
    let world = World::new(&lab.settings());
    let secret = format!("STUDIO_SECRET={}\n", crate::issuer::SECRET);
    let path = world.home.join("secrets.env");
    std::fs::write(&path, secret).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    world
}

/// A browser that began to sign in, with its cookie and the page of the issuer.
async fn begun(world: &World) -> (Browser<'_>, String) {
    let mut browser = Browser::new(&world.router);
    let answer = browser.post(BEGIN, &json!({})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    browser.cookie = answer.cookie();
    (browser, answer.body["url"].as_str().unwrap().to_owned())
}

/// The browser comes back from another site.
async fn back(browser: &Browser<'_>, query: &str) -> Answer {
    let mut browser = browser.clone();
    browser.site = Some("cross-site".to_owned());
    browser.mode = Some("navigate".to_owned());
    browser.get(&format!("{CALLBACK}?{query}")).await
}

/// Every cookie that an answer sets, whole.
fn cookies(answer: &Answer) -> Vec<String> {
    let all = answer.headers.get_all("set-cookie").iter();
    all.map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

/// The session an answer opened, as `name=value`.
fn session(answer: &Answer) -> Option<String> {
    let all = cookies(answer).into_iter();
    let mut own = all.filter(|cookie| cookie.contains("SameSite=Strict"));
    own.next()
        .map(|cookie| cookie.split(';').next().unwrap().to_owned())
}

/// Signs in as a person of whom the issuer says this. The session, or the word why not.
async fn sign_in<'a>(world: &'a World, lab: &Lab, claims: &Value) -> Result<Browser<'a>, String> {
    let (mut browser, page) = begun(world).await;
    let query = lab.agree(&page, claims, world.now_ms());
    let answer = back(&browser, &query).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    match session(&answer) {
        Some(cookie) => {
            assert_eq!(answer.header("location"), "/");
            browser.cookie = Some(cookie);
            let shown = browser.get("/api/v1/session").await;
            browser.csrf = shown.body["csrf"].as_str().map(str::to_owned);
            Ok(browser)
        }
        None => {
            let place = answer.header("location");
            Err(place.strip_prefix("/#/sign-in/").unwrap().to_owned())
        }
    }
}

#[tokio::test]
async fn the_role_comes_from_the_claims() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    for (roles, role) in [
        (json!(["staff"]), "viewer"),
        (json!("leads"), "approver"),
        (json!(["x", "staff", "admins", 7]), "owner"),
    ] {
        let browser = sign_in(&world, &lab, &json!({ "roles": roles }))
            .await
            .unwrap();
        let shown = browser.get("/api/v1/session").await;
        assert_eq!(
            shown.body["person"],
            json!({"name": "oauth:u-17", "role": role})
        );
        let changed = browser
            .send(Method::DELETE, "/api/v1/sessions", &json!({}))
            .await;
        match role {
            "owner" => assert_eq!(changed.status, StatusCode::OK, "{}", changed.text),
            _ => assert_eq!(changed.code(), "studio.role"),
        }
    }
    let notices = world.engine.store().audit();
    let notices = notices.notices(&engine::Filter::default()).unwrap();
    let signed = notices.iter().map(|entry| &entry.notice);
    let signed: Vec<_> = signed
        .filter(|notice| notice.act.word() == "person.signed_in")
        .collect();
    assert_eq!(signed.len(), 3);
    let text = format!("{signed:?}");
    assert!(
        text.contains("oauth:u-17") && text.contains(&lab.name()),
        "{text}"
    );
}

/// Nothing of the issuer reaches the browser, and nothing of the session stands in an address.
#[tokio::test]
async fn no_token_is_in_an_address_an_answer_or_a_file() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let (mut browser, page) = begun(&world).await;
    let cookie = browser.cookie.clone().unwrap();
    let (_, secret) = cookie.split_once('=').unwrap();
    assert!(!page.contains(secret), "{page}");
    let asked = parameters(page.split_once('?').unwrap().1);
    assert_eq!(
        asked["redirect_uri"],
        format!("http://127.0.0.1:7464{CALLBACK}")
    );
    assert!(!page.contains(crate::issuer::SECRET) && !asked.contains_key("code_verifier"));
    let query = lab.agree(&page, &json!({"roles": ["staff"]}), world.now_ms());
    let answer = back(&browser, &query).await;
    assert_eq!((answer.header("location"), answer.text.as_str()), ("/", ""));
    for cookie in cookies(&answer) {
        assert!(cookie.contains("HttpOnly"), "{cookie}");
    }
    assert!(
        cookies(&answer)
            .iter()
            .any(|cookie| cookie.contains("_login=;")),
        "it is over"
    );
    browser.cookie = session(&answer);
    let shown = browser.get("/api/v1/session").await.text;
    let mut kept = shown;
    for entry in std::fs::read_dir(&world.home).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        kept.push_str(&String::from_utf8_lossy(&bytes));
    }
    for word in ["access-token-of", "refresh-token-of", "code-1\"", secret] {
        assert!(!kept.contains(word), "{word}");
    }
}

#[tokio::test]
async fn without_a_role_there_is_no_access() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    for claims in [
        json!({}),
        json!({"roles": []}),
        json!({"roles": null}),
        json!({"roles": {"staff": true}}),
        json!({"roles": ["Staff", "staff ", "", "owner", "viewer"]}),
        json!({"roles": true, "role": "admins", "groups": ["admins"]}),
    ] {
        let refused = sign_in(&world, &lab, &claims).await.err();
        assert_eq!(refused.as_deref(), Some("role"), "{claims}");
    }
    // The control.
    assert!(
        sign_in(&world, &lab, &json!({"roles": ["staff"]}))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_token_that_is_wrong_in_one_way_opens_nothing() {
    type Twist = fn(&mut Value, &mut Value);
    let lab = Lab::start().await;
    let staff = json!({"roles": ["staff"]});
    let wrong: [(&str, Twist); 17] = [
        ("another issuer", |_, claims| {
            claims["iss"] = json!("https://evil.example")
        }),
        ("no issuer", |_, claims| claims["iss"] = Value::Null),
        ("another audience", |_, claims| {
            claims["aud"] = json!("another-client")
        }),
        ("no audience", |_, claims| claims["aud"] = Value::Null),
        ("shared, and no party", |_, claims| {
            claims["aud"] = json!([crate::issuer::CLIENT, "other"]);
        }),
        ("another party", |_, claims| {
            claims["aud"] = json!([crate::issuer::CLIENT, "other"]);
            claims["azp"] = json!("other");
        }),
        ("expired", |_, claims| claims["exp"] = json!(1_000)),
        ("no end", |_, claims| claims["exp"] = Value::Null),
        ("from the future", |_, claims| {
            claims["iat"] = json!(9_000_000_000_u64)
        }),
        ("another nonce", |_, claims| claims["nonce"] = json!("x")),
        ("no nonce", |_, claims| claims["nonce"] = Value::Null),
        ("no subject", |_, claims| claims["sub"] = Value::Null),
        ("a hidden name", |_, claims| {
            claims["sub"] = json!("ow\u{200b}ner")
        }),
        ("an access token", |header, _| {
            header["typ"] = json!("at+jwt")
        }),
        ("another key", |header, _| header["kid"] = json!("two")),
        ("a critical extension", |header, _| {
            header["crit"] = json!(["x"])
        }),
        ("a key it brings along", |header, _| {
            header["kid"] = json!("mine");
            header["jwk"] = json!({"kty": "EC"});
        }),
    ];
    // Wrong ones count, and ten in a minute stop every sign-in.
    for chunk in wrong.chunks(8) {
        let world = world_of(&lab);
        for (why, twist) in chunk {
            lab.set(|state| state.twist = Some(Box::new(*twist)));
            let refused = sign_in(&world, &lab, &staff).await.err();
            assert_eq!(refused.as_deref(), Some("token"), "{why}");
        }
        lab.set(|state| state.twist = None);
        // The control.
        assert!(sign_in(&world, &lab, &staff).await.is_ok());
    }
}

#[tokio::test]
async fn a_signature_that_is_not_the_issuers_opens_nothing() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let owner = json!({"roles": ["admins"]});
    for sign in [Sign::Not, Sign::Stranger, Sign::PublicAsSecret] {
        lab.set(|state| state.sign = sign);
        let refused = sign_in(&world, &lab, &owner).await.err();
        assert_eq!(refused.as_deref(), Some("token"), "{sign:?}");
    }
    lab.set(|state| state.sign = Sign::Own);
    assert!(sign_in(&world, &lab, &owner).await.is_ok());
}

/// An answer counts in the browser that asked, once, for ten minutes, at this server.
#[tokio::test]
async fn an_answer_belongs_to_the_browser_that_asked() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let staff = json!({"roles": ["staff"]});
    let (mine, my_page) = begun(&world).await;
    let (other, other_page) = begun(&world).await;
    let my_query = lab.agree(&my_page, &staff, world.now_ms());
    let other_query = lab.agree(&other_page, &staff, world.now_ms());
    let mut none = mine.clone();
    none.cookie = None;
    let mut both = mine.clone();
    both.cookie = Some(format!(
        "{}; {}",
        mine.cookie.as_deref().unwrap(),
        other.cookie.as_deref().unwrap()
    ));
    let without_state = my_query.replace("state=", "old=");
    let changed = my_query.replacen("state=", "state=1", 1);
    let twice = format!("{my_query}&state=x");
    for (browser, query) in [
        (&mine, &other_query),
        (&other, &my_query),
        (&none, &my_query),
        (&both, &my_query),
        (&mine, &without_state),
        (&mine, &changed),
        (&mine, &twice),
    ] {
        let answer = back(browser, query).await;
        assert_eq!(answer.header("location"), "/#/sign-in/state", "{query}");
        assert_eq!(session(&answer), None);
    }
    // Another process of the same home has another key.
    let restarted = studio(&world.engine, crate::world::HOST).router();
    let mut elsewhere = Browser::new(&restarted);
    elsewhere.cookie.clone_from(&mine.cookie);
    assert_eq!(
        back(&elsewhere, &my_query).await.header("location"),
        "/#/sign-in/state"
    );
    assert_eq!(
        lab.state.lock().unwrap().exchanges,
        0,
        "the issuer was not even asked"
    );
    // The control, and the same once more.
    assert_eq!(back(&mine, &my_query).await.header("location"), "/");
    assert_eq!(
        back(&mine, &my_query).await.header("location"),
        "/#/sign-in/refused"
    );
    let late_query = lab.agree(&other_page, &staff, world.now_ms());
    world.pass_minutes(10);
    assert_eq!(
        back(&other, &late_query).await.header("location"),
        "/#/sign-in/state"
    );
}

/// Attack: the code of another person's sign-in, put into one's own; or one's own into
/// another person's browser.
#[tokio::test]
async fn a_code_of_another_sign_in_is_of_no_use() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let owner = json!({"roles": ["admins"], "sub": "the-owner"});
    let code_of = |query: &str| parameters(query)["code"].clone();
    for (is_lax, why) in [(false, "refused"), (true, "token")] {
        lab.set(|state| state.is_lax = is_lax);
        let (_, victims_page) = begun(&world).await;
        let stolen = code_of(&lab.agree(&victims_page, &owner, world.now_ms()));
        let (attacker, page) = begun(&world).await;
        let query = lab.agree(&page, &json!({}), world.now_ms());
        let query = query.replace(&code_of(&query), &stolen);
        let answer = back(&attacker, &query).await;
        assert_eq!(answer.header("location"), format!("/#/sign-in/{why}"));
        assert_eq!(session(&answer), None);
    }
}

#[tokio::test]
async fn an_issuer_that_is_not_the_one_is_not_believed() {
    let lab = Lab::start().await;
    let staff = json!({"roles": ["staff"]});
    let good = lab.state.lock().unwrap().metadata.clone();
    // What the answer says about who gives it.
    let world_one = world_of(&lab);
    for (from, to) in [
        ("&iss=", "&iss=https%3A%2F%2Fevil.example%2F"),
        ("&iss=", "&was="),
    ] {
        let (browser, page) = begun(&world_one).await;
        let query = lab
            .agree(&page, &staff, world_one.now_ms())
            .replace(from, to);
        let answer = back(&browser, &query).await;
        assert_eq!(answer.header("location"), "/#/sign-in/issuer", "{query}");
    }
    assert_eq!(lab.state.lock().unwrap().exchanges, 0);
    assert!(sign_in(&world_one, &lab, &staff).await.is_ok());
    // What the issuer says about itself.
    for (name, value) in [
        ("issuer", json!("https://evil.example")),
        ("code_challenge_methods_supported", json!(["plain"])),
        ("token_endpoint", json!("http://evil.example/token")),
        (
            "authorization_endpoint",
            json!("http://evil.example/authorize"),
        ),
        ("authorization_endpoint", json!("javascript:alert(1)")),
        ("jwks_uri", json!("http://10.0.0.1/keys")),
        ("jwks_uri", Value::Null),
    ] {
        lab.set(|state| {
            state.metadata = good.clone();
            state.metadata[name] = value.clone();
        });
        let world = world_of(&lab);
        let answer = Browser::new(&world.router).post(BEGIN, &json!({})).await;
        assert_eq!(answer.code(), "studio.unavailable", "{name} {value}");
        assert!(!answer.text.contains("evil"), "{}", answer.text);
    }
}

/// Whatever a link brings, the browser ends at our own page.
#[tokio::test]
async fn a_link_to_the_callback_leads_nowhere_else() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let (browser, page) = begun(&world).await;
    let state = parameters(page.split_once('?').unwrap().1)["state"].clone();
    let issuer = lab.name().replace(':', "%3A").replace('/', "%2F");
    let ours = format!("state={state}&iss={issuer}");
    for (query, place) in [
        (String::new(), "/#/sign-in/state"),
        (
            "redirect=https%3A%2F%2Fevil.example&next=%2F%2Fevil.example".to_owned(),
            "/#/sign-in/state",
        ),
        (
            format!("{ours}&error=https%3A%2F%2Fevil.example%0d%0aset-cookie%3Aa"),
            "/#/sign-in/refused",
        ),
        (
            format!("{ours}&error=access_denied&error_description=%3Cscript%3E"),
            "/#/sign-in/refused",
        ),
        (format!("{ours}&code="), "/#/sign-in/refused"),
    ] {
        let answer = back(&browser, &query).await;
        assert_eq!(answer.header("location"), place, "{query}");
        assert_eq!(answer.text, "");
        assert_eq!(session(&answer), None);
    }
    // A frame, a script or a picture of another site does not get that far.
    let mut framed = browser.clone();
    framed.site = Some("cross-site".to_owned());
    framed.mode = Some("no-cors".to_owned());
    let refused = framed.get(&format!("{CALLBACK}?{ours}")).await;
    assert_eq!(refused.code(), "studio.origin");
}

/// Links without a sign-in of this browser stop no one; guesses with one stop after ten.
#[tokio::test]
async fn only_sign_ins_that_were_begun_count_as_tries() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let (browser, _) = begun(&world).await;
    for _ in 0..30 {
        assert_eq!(
            back(&browser, "code=x&state=y").await.header("location"),
            "/#/sign-in/state"
        );
    }
    assert!(world.owner().await.csrf.is_some());
    let (browser, page) = begun(&world).await;
    let query = lab.agree(&page, &json!({}), world.now_ms());
    let wrong = query.replace("code=code", "code=none");
    for _ in 0..30 {
        assert_eq!(
            back(&browser, &wrong).await.header("location"),
            "/#/sign-in/refused"
        );
    }
    assert_eq!(lab.state.lock().unwrap().exchanges, 10);
}

#[tokio::test]
async fn the_sign_in_is_offered_where_it_works() {
    let plain = World::new("");
    let out = Browser::new(&plain.router).get("/api/v1/session").await;
    assert_eq!(
        out.body["error"]["details"]["signIn"],
        json!({"code": true, "oauth": null})
    );
    let off = Browser::new(&plain.router).post(BEGIN, &json!({})).await;
    assert_eq!(off.code(), "studio.unavailable");
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let out = Browser::new(&world.router).get("/api/v1/session").await;
    let way = &out.body["error"]["details"]["signIn"]["oauth"];
    assert_eq!(way["name"], format!("Sign in with {}", lab.address));
    assert!(way["problems"]["role"].is_string());
    // A cookie of `localhost` would not be sent to `127.0.0.1`.
    let mut elsewhere = Browser::new(&world.router);
    elsewhere.host = "localhost:7464".to_owned();
    elsewhere.origin = Some("http://localhost:7464".to_owned());
    assert_eq!(
        elsewhere.post(BEGIN, &json!({})).await.code(),
        "studio.invalid"
    );
    // Another site cannot begin one.
    let mut foreign = Browser::new(&world.router);
    foreign.origin = Some("https://evil.example".to_owned());
    assert_eq!(
        foreign.post(BEGIN, &json!({})).await.code(),
        "studio.origin"
    );
}

#[tokio::test]
async fn the_settings_end_sessions_that_are_open() {
    let lab = Lab::start().await;
    let world = world_of(&lab);
    let browser = sign_in(&world, &lab, &json!({"roles": ["admins"]}))
        .await
        .unwrap();
    let owner = world.owner().await;
    let status = async |browser: &Browser<'_>| browser.get("/api/v1/tools").await.status;
    assert_eq!(status(&browser).await, StatusCode::OK);
    std::fs::write(
        world.home.join("ringfence.toml"),
        "[studio]\nidle_minutes = 20\nsession_hours = 1\n",
    )
    .unwrap();
    assert_eq!(
        status(&browser).await,
        StatusCode::UNAUTHORIZED,
        "no issuer vouches for them"
    );
    assert_eq!(status(&owner).await, StatusCode::OK);
    for _ in 0..3 {
        world.pass_minutes(19);
        assert_eq!(status(&owner).await, StatusCode::OK);
    }
    world.pass_minutes(3);
    assert_eq!(
        status(&owner).await,
        StatusCode::UNAUTHORIZED,
        "an hour is over"
    );
    let owner = world.owner().await;
    world.pass_minutes(20);
    assert_eq!(
        status(&owner).await,
        StatusCode::UNAUTHORIZED,
        "unused for twenty minutes"
    );
}
