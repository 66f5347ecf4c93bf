//! Every route, in one table: the router is made from it, and so is the OpenAPI document, so
//! neither can have a route that the other lacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter};
use serde_json::Value;

use crate::error::ApiError;
use crate::route::{API, CALLBACK, CHANGE, Needs, Route, VIEW, on_disk, respond};
use crate::studio::Studio;
use crate::{api, asset, event, guard, oauth, page, session};

impl Studio {
    /// Every route of the Studio, with its checks around it.
    pub fn router(&self) -> Router {
        guard::around(router(self), self)
    }

    /// Every route as method and path, for tests that walk them.
    #[must_use]
    pub fn routes() -> Vec<(String, String)> {
        let shown = |route: &Route| (route.method.to_string(), route.path.to_owned());
        table().iter().map(shown).collect()
    }
}

/// What the API promises, as an OpenAPI document.
#[must_use]
pub fn openapi() -> Value {
    api::document(&table())
}

/// Every route of the API.
fn table() -> Vec<Route> {
    let mut all = vec![
        Route::raw(
            Method::POST,
            "/api/v1/session",
            Needs::Nothing,
            "Exchanges a one-time code for a session",
            &[],
            |studio, asked| async move {
                let given = asked.read()?;
                on_disk(move || session::sign_in(&studio, &asked, given)).await
            },
        )
        .taking::<session::SignIn>()
        .answering::<session::SessionView>(),
        Route::get(
            "/api/v1/session",
            Needs::Nothing,
            "Who is signed in, or how one signs in",
            &[],
            session::show,
        ),
        Route::raw(
            Method::DELETE,
            "/api/v1/session",
            VIEW,
            "Ends this session",
            &[],
            |studio, asked| on_disk(move || session::sign_out(&studio, &asked)),
        )
        .answering::<page::DoneView>(),
        Route::get(
            "/api/v1/sessions",
            CHANGE,
            "The sessions of all people",
            &[],
            session::list,
        ),
        Route::send(
            Method::DELETE,
            "/api/v1/sessions",
            CHANGE,
            "Ends every session of every person",
            |studio, asked, _: page::Nothing| session::sign_out_all(studio, asked),
        ),
    ];
    all.extend(oauth_routes());
    all.push(Route::raw(
        Method::GET,
        "/api/v1/events",
        VIEW,
        "What happens, as it happens",
        &[],
        event::stream,
    ));
    all.push(Route::get(
        "/api/v1/openapi.json",
        Needs::Nothing,
        "What this API promises",
        &[],
        |_, _| Ok(openapi()),
    ));
    all.extend(page::routes());
    all
}

/// Signing in with an issuer's account.
fn oauth_routes() -> Vec<Route> {
    vec![
        Route::raw(
            Method::POST,
            "/api/v1/session/oauth",
            Needs::Nothing,
            "Where to sign in with an issuer's account",
            &[],
            oauth::begin,
        )
        .taking::<page::Nothing>()
        .answering::<oauth::LoginPage>(),
        Route::raw(
            Method::GET,
            CALLBACK,
            Needs::Nothing,
            "Where an issuer sends people back to",
            &["code", "state", "iss", "error"],
            oauth::finish,
        )
        .ignoring_unknown(),
    ]
}

/// The router of the table, with the files of the page beside it.
fn router(studio: &Studio) -> Router {
    let mut by_path: BTreeMap<&'static str, MethodRouter<Studio>> = BTreeMap::new();
    for route in table() {
        let filter = match route.method {
            Method::POST => MethodFilter::POST,
            Method::PUT => MethodFilter::PUT,
            Method::DELETE => MethodFilter::DELETE,
            // The table has no other method; an odd one would be a GET,
            // which changes nothing.
            _ => MethodFilter::GET,
        };
        let path = route.path;
        let route = Arc::new(route);
        let answer = move |State(studio): State<Studio>, request: Request| {
            let route = Arc::clone(&route);
            async move {
                respond(&route, studio, request)
                    .await
                    .unwrap_or_else(Into::into)
            }
        };
        let known = by_path.remove(path).unwrap_or_default();
        by_path.insert(path, known.on(filter, answer));
    }
    let mut router = Router::new();
    for (path, methods) in by_path {
        router = router.route(path, methods.fallback(refuse_method));
    }
    router.fallback(files).with_state(studio.clone())
}

async fn refuse_method() -> Response {
    ApiError::method().into()
}

/// What is no route of the API is a file of the page, or nothing.
async fn files(request: Request) -> Response {
    let path = request.uri().path();
    // Under the API there are no files: a mistyped route must not answer with the page.
    if path.starts_with(API) {
        return ApiError::unknown("there is nothing at this address of the API").into();
    }
    match *request.method() {
        Method::GET | Method::HEAD => asset::respond(path, request.headers()),
        _ => ApiError::method().into(),
    }
}
