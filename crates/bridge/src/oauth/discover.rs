//! Who issues the tokens of a server, and where: RFC 9728, then RFC 8414 or OpenID.
//!
//! Every document must name the one that was asked: the resource its server, the
//! issuer itself. Otherwise one server could have us sign in for another.

use host::client::{ClientMethod, ClientRequest, HttpClient};
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};
use serde::Deserialize;
use url::Url;

use crate::oauth::OAuthFault;
use crate::oauth::challenge::{self, Challenge};
use crate::oauth::request::{get_document, send};

/// Issuers of one server that are tried.
const ISSUERS_MAX: usize = 4;

/// What is known about signing in to a server.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    /// What tokens are for.
    pub(crate) resource: String,
    /// What the server asks for.
    pub(crate) scope: Option<String>,
    pub(crate) issuer: IssuerMetadata,
}

/// RFC 9728, as far as we need it.
#[derive(Clone, Debug, Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// RFC 8414, as far as we need it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct IssuerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: String,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) jwks_uri: Option<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(crate) code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

/// Asks a server, then its issuer.
pub(crate) async fn discover(client: &HttpClient, server: &Url) -> Result<Discovered, OAuthFault> {
    let challenge = probe(client, server).await?;
    let Some(resource) = find_resource(client, server, challenge.as_ref()).await? else {
        return Err(OAuthFault::NotOffered);
    };
    let scopes = resource.scopes_supported.join(" ");
    // What the server asks for now counts before the list of all it knows.
    let scope = challenge.and_then(|challenge| challenge.scope);
    let scope = scope.or_else(|| Some(scopes).filter(|scopes| !scopes.is_empty()));
    let mut last = OAuthFault::NotOffered;
    for raw_issuer in resource.authorization_servers.iter().take(ISSUERS_MAX) {
        match find_issuer(client, raw_issuer).await {
            Ok(issuer) => {
                return Ok(Discovered {
                    resource: resource.resource,
                    scope,
                    issuer,
                });
            }
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

/// The challenge of a server that wants a token; nothing if it wants none.
async fn probe(client: &HttpClient, server: &Url) -> Result<Option<Challenge>, OAuthFault> {
    const DOING: &str = "ask the server how to sign in";
    // Some look at the method before they look at the token.
    for method in [ClientMethod::Get, ClientMethod::Post] {
        let mut request = ClientRequest::new(method, server.as_str());
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        request.headers.insert(header::ACCEPT, accept);
        if method == ClientMethod::Post {
            let json = HeaderValue::from_static("application/json");
            request.headers.insert(header::CONTENT_TYPE, json);
            request.body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into();
        }
        let reply = send(client, request, DOING).await?;
        if reply.status == StatusCode::UNAUTHORIZED {
            let header = reply.headers.get(header::WWW_AUTHENTICATE);
            let text = header.and_then(|header| header.to_str().ok());
            return Ok(Some(challenge::parse(text.unwrap_or_default())));
        }
    }
    Ok(None)
}

async fn find_resource(
    client: &HttpClient,
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Option<ResourceMetadata>, OAuthFault> {
    const DOING: &str = "read what the server says about itself";
    let named = challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
    let places = match named {
        Some(raw_url) => {
            let url = server.join(raw_url).map_err(|_| OAuthFault::Answer {
                doing: DOING,
                what: "it names an address that is none".to_owned(),
            })?;
            // Before it is fetched: an attacker on the way could name an issuer of its own.
            check_secure(client, &url, "document about the server")?;
            vec![url]
        }
        None => well_known(server, "oauth-protected-resource"),
    };
    for place in places {
        let found = get_document::<ResourceMetadata>(client, &place, DOING).await?;
        let Some(metadata) = found else { continue };
        // Attack: a server names the document of another, to get a token for that one.
        if !covers(&metadata.resource, server) {
            let what = "the document about the server is for another resource";
            return Err(OAuthFault::Mismatch(what.to_owned()));
        }
        return Ok(Some(metadata));
    }
    Ok(None)
}

pub(crate) async fn find_issuer(
    client: &HttpClient,
    raw_issuer: &str,
) -> Result<IssuerMetadata, OAuthFault> {
    const DOING: &str = "read what the issuer says about itself";
    let wrong = |what: &str| OAuthFault::Answer {
        doing: DOING,
        what: what.to_owned(),
    };
    let issuer = Url::parse(raw_issuer).map_err(|_| wrong("its name is no URL"))?;
    check_secure(client, &issuer, "issuer")?;
    let mut places = well_known(&issuer, "oauth-authorization-server");
    // At its path alone: the document at the root belongs to another
    // issuer of the same host.
    places.truncate(1);
    places.extend(
        well_known(&issuer, "openid-configuration")
            .into_iter()
            .take(1),
    );
    if issuer.path() != "/" {
        let mut appended = issuer.clone();
        let path = issuer.path().trim_end_matches('/');
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(appended);
    }
    for place in places {
        let found = get_document::<IssuerMetadata>(client, &place, DOING).await?;
        let Some(metadata) = found else { continue };
        // Attack: mix-up. An issuer that answers in another's name would be given
        // what the other's users have.
        if !is_same_issuer(&metadata.issuer, raw_issuer) {
            let what = "the issuer's document is in another issuer's name";
            return Err(OAuthFault::Mismatch(what.to_owned()));
        }
        check_endpoints(client, &metadata)?;
        return Ok(metadata);
    }
    Err(wrong("it has no document"))
}

fn check_endpoints(client: &HttpClient, metadata: &IssuerMetadata) -> Result<(), OAuthFault> {
    for (what, raw_url) in [
        ("token endpoint", Some(&metadata.token_endpoint)),
        ("sign-in page", metadata.authorization_endpoint.as_ref()),
        (
            "registration endpoint",
            metadata.registration_endpoint.as_ref(),
        ),
        ("address of the keys", metadata.jwks_uri.as_ref()),
    ] {
        let Some(raw_url) = raw_url else { continue };
        let url = Url::parse(raw_url).map_err(|_| OAuthFault::Answer {
            doing: "read what the issuer says about itself",
            what: format!("its {what} is no URL"),
        })?;
        check_secure(client, &url, what)?;
    }
    Ok(())
}

/// Https, or a host of the owner's own network that the owner named.
pub(crate) fn check_secure(
    client: &HttpClient,
    url: &Url,
    what: &'static str,
) -> Result<(), OAuthFault> {
    let is_secure = match url.scheme() {
        "https" => true,
        // Named by the owner; a document of a server cannot make a host private.
        "http" => client.is_private_host(url.as_str()),
        _ => false,
    };
    is_secure.then_some(()).ok_or(OAuthFault::Cleartext(what))
}

/// Where a document of this kind may be: below the path, then at the root.
fn well_known(base: &Url, kind: &str) -> Vec<Url> {
    let path = base.path().trim_end_matches('/');
    let mut paths = vec![format!("/.well-known/{kind}{path}")];
    if !path.is_empty() {
        paths.push(format!("/.well-known/{kind}"));
    }
    let place = |path: String| {
        let mut url = base.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    paths.into_iter().map(place).collect()
}

/// Whether a resource is the server, or the part of its origin the server lies in.
fn covers(raw_resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(raw_resource) else {
        return false;
    };
    let above = resource.path().trim_end_matches('/');
    let is_below = server
        .path()
        .strip_prefix(above)
        // By whole names: `/api` does not cover `/api-old`.
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && resource.fragment().is_none() && is_below
}

/// The same text; but the one slash of a root counts for nothing.
fn is_same_issuer(one: &str, other: &str) -> bool {
    let is_root = |text: &str| Url::parse(text).is_ok_and(|url| url.path() == "/");
    let trimmed = |text: &str| text.strip_suffix('/').unwrap_or(text).to_owned();
    one == other || (is_root(one) && is_root(other) && trimmed(one) == trimmed(other))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{covers, is_same_issuer, well_known};

    #[track_caller]
    fn check_covers(resource: &str, server: &str, expected: bool) {
        let server = Url::parse(server).unwrap();
        assert_eq!(covers(resource, &server), expected, "{resource} {server}");
    }

    #[test]
    fn a_resource_covers_its_server_and_nothing_beside() {
        check_covers("https://a.com/mcp", "https://a.com/mcp", true);
        check_covers("https://a.com", "https://a.com/mcp", true);
        check_covers("https://a.com/", "https://a.com/mcp", true);
        check_covers("https://a.com/mcp/", "https://a.com/mcp", true);
        check_covers("https://a.com/m", "https://a.com/mcp", false);
        check_covers("https://a.com/other", "https://a.com/mcp", false);
        check_covers("https://b.com/mcp", "https://a.com/mcp", false);
        check_covers("http://a.com/mcp", "https://a.com/mcp", false);
        check_covers("https://a.com:8443/mcp", "https://a.com/mcp", false);
        check_covers("nothing", "https://a.com/mcp", false);
    }

    #[test]
    fn issuers_are_compared_as_texts() {
        assert!(is_same_issuer("https://a.com", "https://a.com/"));
        assert!(is_same_issuer("https://a.com/x", "https://a.com/x"));
        assert!(!is_same_issuer("https://a.com/x", "https://a.com/x/"));
        assert!(!is_same_issuer("https://a.com", "https://a.com.evil.com"));
        assert!(!is_same_issuer("https://a.com", "http://a.com"));
    }

    #[test]
    fn documents_are_looked_for_below_the_path_first() {
        let base = Url::parse("https://a.com/x/mcp?q=1").unwrap();
        let places: Vec<_> = well_known(&base, "k").iter().map(Url::to_string).collect();
        let expected = [
            "https://a.com/.well-known/k/x/mcp",
            "https://a.com/.well-known/k",
        ];
        assert_eq!(places, expected);
    }
}
