//! The route by which git reaches one repository: `/-/git/repo/…`. Git itself neither
//! resolves a name nor speaks TLS nor sees a credential.
//!
//! Exactly two requests are passed on, those of the smart protocol of one service:
//! `GET …/info/refs?service=S` and `POST …/S`. Nothing else exists: no dumb protocol, so no
//! alternates; no other path, so no bundle; no other service, so no push by a call that
//! fetches. A redirect of the first request is followed here, hop by hop, each decided like
//! any other; git never sees one.

use std::sync::Mutex;

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use model::sync::lock;
use url::Url;

use crate::egress::{EgressRoute, RouteAnswer, RouteBody, RouteGuard, RouteReply, RouteRequest};

/// What is said of an address that cannot be asked for.
const NO_ADDRESS: &str = "the address of the repository is none";
/// What is said of a host that answers with something else.
const NOT_SMART: &str = "does not speak the smart protocol";
/// Redirects that are followed.
const REDIRECTS_MAX: usize = 4;

/// The name of the route, and of the one repository below it.
pub const GIT_ROUTE: &str = "git";
/// What git is told the repository is.
pub const GIT_ROUTE_PATH: &str = "/-/git/repo";

/// What a call may do with the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitService {
    /// Read it.
    UploadPack,
    /// Write to it.
    ReceivePack,
}

impl GitService {
    fn word(self) -> &'static str {
        match self {
            GitService::UploadPack => "git-upload-pack",
            GitService::ReceivePack => "git-receive-pack",
        }
    }
}

/// Who we are to a host of repositories.
pub struct GitCredential {
    /// The user; hosts that take a token mostly ignore it.
    pub user: String,
    /// The password or token.
    pub secret: String,
}

/// Without the secret.
impl std::fmt::Debug for GitCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitCredential").finish_non_exhaustive()
    }
}

/// Headers of git that are passed on.
const PASSED: [HeaderName; 3] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
];

/// The route to one repository.
pub struct GitRoute {
    service: GitService,
    /// Where the repository is: what the caller named, or where it was redirected to.
    base: Mutex<GitPlace>,
    /// Why a request of git went nowhere: git itself says only which status it got.
    unreached: Mutex<Option<GitUnreached>>,
}

/// Why a request of git did not get to its repository, or no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitUnreached {
    /// The stable word, such as `resolved-private-ip`.
    pub reason: &'static str,
    /// The sentence that `fetch` has for it: host, and what it broke.
    pub sentence: String,
    /// The host that was asked, with its port.
    pub host: String,
    /// What the host answered, if it was reached.
    pub status: Option<u16>,
}

#[derive(Clone)]
struct GitPlace {
    url: Url,
    /// Goes only to the origin it is for.
    authorization: Option<HeaderValue>,
}

/// Without the credential.
impl std::fmt::Debug for GitRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitRoute")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl GitRoute {
    /// The route to the repository at an address, with a credential for its origin.
    #[must_use]
    pub fn new(url: Url, service: GitService, credential: Option<&GitCredential>) -> GitRoute {
        // What is no header is no credential: the host then says what it says to strangers.
        let authorization = credential.and_then(|credential| {
            let pair = format!("{}:{}", credential.user, credential.secret);
            let mut value = HeaderValue::from_str(&format!("Basic {}", base64(&pair))).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        GitRoute {
            service,
            base: Mutex::new(GitPlace { url, authorization }),
            unreached: Mutex::default(),
        }
    }

    /// Why the last request of git did not get there; nothing if it did.
    #[must_use]
    pub fn unreached(&self) -> Option<GitUnreached> {
        lock(&self.unreached).clone()
    }

    /// The refusal that git gets, which is kept for those who explain its failure.
    fn refuse(&self, to: &Url, reason: &'static str, sentence: &str) -> RouteReply {
        *lock(&self.unreached) = Some(GitUnreached {
            reason,
            sentence: sentence.to_owned(),
            host: with_port(to),
            status: None,
        });
        RouteReply::refused(reason, sentence)
    }

    /// A reply as git gets it.
    fn pass(&self, from: &Url, reply: RouteReply, expected: &str) -> RouteReply {
        let status = reply.status;
        let (shown, host) = (authority(from), with_port(from));
        let reply = checked(reply, expected);
        *lock(&self.unreached) = match (status, reply.status) {
            (StatusCode::OK, StatusCode::OK) => None,
            (StatusCode::OK, _) => Some(GitUnreached {
                reason: "not-smart-http",
                sentence: format!("{shown} {NOT_SMART}"),
                host,
                status: Some(status.as_u16()),
            }),
            _ => Some(GitUnreached {
                reason: "http-status",
                sentence: format!("{shown} answered {}", status.as_u16()),
                host,
                status: Some(status.as_u16()),
            }),
        };
        reply
    }

    async fn advertise(&self, given: HeaderMap, guard: &RouteGuard) -> RouteReply {
        let service = self.service.word();
        let mut place = lock(&self.base).clone();
        for _ in 0..=REDIRECTS_MAX {
            let Some(address) = place.address("info/refs", Some(service)) else {
                return self.refuse(&place.url, "invalid-url", NO_ADDRESS);
            };
            let headers = place.headers(&given);
            let sent = guard
                .send(Method::GET, address.as_str(), headers, RouteBody::empty())
                .await;
            let reply = match sent {
                Ok(reply) => reply,
                Err(fault) => return self.refuse(&address, fault.reason, &fault.to_string()),
            };
            if !reply.status.is_redirection() {
                let expected = format!("application/x-{service}-advertisement");
                let reply = self.pass(&address, reply, &expected);
                // Only where refs were advertised: the requests that follow go to that place, with
                // the credential.
                if reply.status == StatusCode::OK {
                    *lock(&self.base) = place;
                }
                return reply;
            }
            match place.redirected(&address, &reply, service) {
                Ok(next) => place = next,
                Err(why) => return self.refuse(&address, "redirect-refused", why),
            }
        }
        let sentence = "the repository redirects too often";
        self.refuse(&place.url, "too-many-redirects", sentence)
    }

    async fn exchange(&self, request: RouteRequest, guard: &RouteGuard) -> RouteReply {
        let service = self.service.word();
        let place = lock(&self.base).clone();
        let expected = format!("application/x-{service}-request");
        let sent = request.headers.get(header::CONTENT_TYPE);
        if sent.is_none_or(|sent| sent.as_bytes() != expected.as_bytes()) {
            return RouteReply::refused("not-git", "this is no request of git");
        }
        let Some(address) = place.address(service, None) else {
            return self.refuse(&place.url, "invalid-url", NO_ADDRESS);
        };
        let headers = place.headers(&request.headers);
        let sent = guard
            .send(Method::POST, address.as_str(), headers, request.body)
            .await;
        match sent {
            // Attack: a body sent on to where a redirect leads.
            Ok(reply) if reply.status.is_redirection() => {
                let sentence = "the repository redirects a request";
                self.refuse(&address, "redirect-refused", sentence)
            }
            Ok(reply) => {
                let expected = format!("application/x-{service}-result");
                self.pass(&address, reply, &expected)
            }
            Err(fault) => self.refuse(&address, fault.reason, &fault.to_string()),
        }
    }
}

impl EgressRoute for GitRoute {
    fn answer<'a>(&'a self, request: RouteRequest, guard: RouteGuard) -> RouteAnswer<'a> {
        Box::pin(async move {
            let service = self.service.word();
            let refs = format!("/repo/info/refs?service={service}");
            let pack = format!("/repo/{service}");
            if request.method == Method::GET && request.path == refs {
                return self.advertise(request.headers, &guard).await;
            }
            if request.method == Method::POST && request.path == pack {
                return self.exchange(request, &guard).await;
            }
            let sentence = "this call may not ask the repository for that";
            RouteReply::refused("git-request-refused", sentence)
        })
    }
}

impl GitPlace {
    /// An address below the repository.
    fn address(&self, below: &str, service: Option<&str>) -> Option<Url> {
        let mut url = self.url.clone();
        let path = format!("{}/{below}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.set_query(
            service
                .map(|service| format!("service={service}"))
                .as_deref(),
        );
        url.set_fragment(None);
        (url.scheme() == "https" || url.scheme() == "http").then_some(url)
    }

    fn headers(&self, given: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let protocol = HeaderName::from_static("git-protocol");
        for name in PASSED.into_iter().chain([protocol]) {
            if let Some(value) = given.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static("git/ringfence"),
        );
        if let Some(value) = &self.authorization {
            headers.insert(header::AUTHORIZATION, value.clone());
        }
        headers
    }

    /// Where a redirect of the first request leads: to the same request elsewhere, never to a
    /// weaker scheme, and without the credential where the origin is another.
    fn redirected(
        &self,
        from: &Url,
        reply: &RouteReply,
        service: &str,
    ) -> Result<GitPlace, &'static str> {
        let location = reply.headers.get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let to = location.and_then(|location| from.join(location).ok());
        let to = to.ok_or("the repository redirects to nowhere")?;
        if from.scheme() == "https" && to.scheme() != "https" {
            return Err("the repository redirects to an address without TLS");
        }
        if !to.username().is_empty() || to.password().is_some() {
            return Err("the repository redirects with a password in the address");
        }
        let query = format!("service={service}");
        let path = to.path().strip_suffix("/info/refs");
        let path = path.filter(|_| to.query() == Some(&query));
        let path = path
            .ok_or("the repository redirects to something else")?
            .to_owned();
        let mut url = to.clone();
        url.set_path(&path);
        url.set_query(None);
        let same = url.origin() == self.url.origin();
        Ok(GitPlace {
            authorization: self.authorization.clone().filter(|_| same),
            url,
        })
    }
}

/// A reply as git gets it: of the type of the smart protocol, with no other header. What
/// failed keeps its status and nothing else: no prompt for a password, no text of strangers.
fn checked(reply: RouteReply, expected: &str) -> RouteReply {
    if reply.status != StatusCode::OK {
        return RouteReply {
            status: match reply.status.is_client_error() || reply.status.is_server_error() {
                true => reply.status,
                false => StatusCode::BAD_GATEWAY,
            },
            headers: HeaderMap::new(),
            body: RouteBody::empty(),
        };
    }
    let kind = reply.headers.get(header::CONTENT_TYPE);
    let is_expected = kind.is_some_and(|kind| kind.as_bytes() == expected.as_bytes());
    if !is_expected {
        return RouteReply::refused("not-smart-http", &format!("the repository {NOT_SMART}"));
    }
    let mut headers = HeaderMap::new();
    headers.extend(kind.cloned().map(|kind| (header::CONTENT_TYPE, kind)));
    RouteReply {
        status: StatusCode::OK,
        headers,
        body: reply.body,
    }
}

/// The standard alphabet, with padding.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for three in text.as_bytes().chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let number = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for index in 0..4 {
            let letter = usize::try_from((number >> (18 - 6 * index)) & 63).unwrap_or(0);
            let letter = LETTERS.get(letter).copied().map_or('=', char::from);
            let is_padding = usize::try_from(index).unwrap_or(0) > three.len();
            encoded.push(if is_padding { '=' } else { letter });
        }
    }
    encoded
}

/// Host and port as lists of hosts take them.
fn with_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{host}:{port}")
}

/// Host and port as people write them.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> GitPlace {
        GitPlace {
            url: Url::parse(url).expect(url),
            authorization: Some(HeaderValue::from_static("Basic eA==")),
        }
    }

    fn redirect(to: &str) -> Result<GitPlace, &'static str> {
        let place = place("https://git.example.com/team/project");
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_str(to).expect(to));
        let reply = RouteReply {
            status: StatusCode::MOVED_PERMANENTLY,
            headers,
            body: RouteBody::empty(),
        };
        let from = place
            .address("info/refs", Some("git-upload-pack"))
            .expect("an address");
        place.redirected(&from, &reply, "git-upload-pack")
    }

    #[test]
    fn the_first_request_may_be_sent_elsewhere_and_nothing_else() {
        let query = "?service=git-upload-pack";
        let same = redirect(&format!("/team/project.git/info/refs{query}")).expect("followed");
        assert_eq!(
            same.url.as_str(),
            "https://git.example.com/team/project.git"
        );
        assert!(same.authorization.is_some());
        let other = redirect(&format!("https://other.example.com/p/info/refs{query}"));
        assert!(other.expect("followed").authorization.is_none());
        for bad in [
            "http://git.example.com/team/project.git/info/refs?service=git-upload-pack",
            "https://x:y@git.example.com/p/info/refs?service=git-upload-pack",
            "https://git.example.com/p/info/refs?service=git-receive-pack",
            "https://git.example.com/p/info/refs",
            "https://git.example.com/latest/meta-data/",
            "https://git.example.com/p/objects/info/http-alternates",
        ] {
            assert!(redirect(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn credentials_are_encoded_as_the_standard_says() {
        for (text, expected) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("user:pass?>", "dXNlcjpwYXNzPz4="),
        ] {
            assert_eq!(base64(text), expected);
        }
    }

    #[test]
    fn addresses_keep_below_the_repository() {
        let place = place("https://git.example.com/team/project.git/?x=1#y");
        let refs = place
            .address("info/refs", Some("git-upload-pack"))
            .expect("an address");
        assert_eq!(
            refs.as_str(),
            "https://git.example.com/team/project.git/info/refs?service=git-upload-pack"
        );
        let pack = place.address("git-upload-pack", None).expect("an address");
        assert_eq!(
            pack.as_str(),
            "https://git.example.com/team/project.git/git-upload-pack"
        );
    }
}
