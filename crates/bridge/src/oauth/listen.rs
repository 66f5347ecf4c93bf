//! Where the browser comes back to: a listener on loopback, for one answer.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use crate::oauth::OAuthFault;
use crate::oauth::text::TokenText;

const PATH: &str = "/callback";
/// The head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// One request.
const REQUEST_WAIT: Duration = Duration::from_secs(5);
/// Requests looked at; a browser makes two or three.
const REQUESTS_MAX: usize = 1_000;

/// The listener.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    pub(crate) redirect_uri: String,
}

/// What the browser brought back.
#[derive(Debug)]
pub(crate) enum Returned {
    Code {
        code: TokenText,
        issuer: Option<String>,
    },
    Refused {
        error: String,
        issuer: Option<String>,
    },
}

impl Listener {
    /// Listens on loopback; port 0 is any.
    pub(crate) async fn open(port: u16) -> Result<Listener, OAuthFault> {
        let failed = |error: std::io::Error| OAuthFault::Machine {
            doing: "listen for the browser",
            what: error.to_string(),
        };
        // By number: `localhost` may be looked up, and lead elsewhere.
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Listener {
            listener,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    /// Waits for the answer with our state. Any other is turned away and changes
    /// nothing: every program of this machine can knock here.
    pub(crate) async fn wait(
        self,
        state: &TokenText,
        wait: Duration,
    ) -> Result<Returned, OAuthFault> {
        let waiting = async {
            for _ in 0..REQUESTS_MAX {
                let Ok((stream, _)) = self.listener.accept().await else {
                    continue;
                };
                // One that connects and says nothing must not hold the others up for long.
                let answer = timeout(REQUEST_WAIT, answer(stream, state)).await;
                if let Ok(Some(returned)) = answer {
                    return Ok(returned);
                }
            }
            Err(OAuthFault::Refused("too many wrong answers".to_owned()))
        };
        let seconds = wait.as_secs();
        let waited = timeout(wait, waiting).await;
        waited.unwrap_or(Err(OAuthFault::TimedOut(seconds)))
    }
}

async fn answer(mut stream: TcpStream, state: &TokenText) -> Option<Returned> {
    let target = read_target(&mut stream).await?;
    let returned = returned(&target, state);
    let (status, words) = match &returned {
        Some(Returned::Code { .. }) => ("200 OK", "You are signed in. You can close this window."),
        Some(Returned::Refused { .. }) => ("200 OK", "The sign-in was refused."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let reply = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n{words}",
        words.len()
    );
    // The answer counts even if the browser has gone.
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
    returned
}

/// What a GET asks for.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let mut piece = [0; 2048];
        let count = stream
            .read(&mut piece)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        head.extend_from_slice(piece.get(..count)?);
        if head.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    let is_get = words.next() == Some("GET");
    words.next().filter(|_| is_get).map(str::to_owned)
}

fn returned(target: &str, state: &TokenText) -> Option<Returned> {
    let base = Url::parse("http://127.0.0.1/").ok()?;
    let url = base.join(target).ok().filter(|url| url.path() == PATH)?;
    // Attack: a parameter given twice may be read twice in two ways.
    let find = |name: &str| {
        let mut all = url.query_pairs().filter(|(key, _)| key == name);
        let first = all.next().map(|(_, value)| value.into_owned());
        first.filter(|_| all.next().is_none())
    };
    if !is_equal(find("state")?.as_bytes(), state.expose().as_bytes()) {
        return None;
    }
    let issuer = find("iss");
    match (find("code"), find("error")) {
        (Some(code), None) => Some(Returned::Code {
            code: TokenText::new(code),
            issuer,
        }),
        // An answer with both is refused: the error is the cautious reading.
        (_, Some(error)) => Some(Returned::Refused { error, issuer }),
        (None, None) => None,
    }
}

/// Compares without telling by time where two texts differ.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    // The lengths may differ: then all of the shorter one is compared,
    // and the result is no.
    let differing = one
        .iter()
        .zip(other)
        .fold(0, |seen, (one, other)| seen | (one ^ other));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::{Returned, returned};
    use crate::oauth::text::TokenText;

    #[track_caller]
    fn check(target: &str, expected: &str) {
        let seen = match returned(target, &TokenText::new("s-1")) {
            None => "nothing".to_owned(),
            Some(Returned::Code { code, issuer }) => {
                format!("{} {}", code.expose(), issuer.unwrap_or_default())
            }
            Some(Returned::Refused { error, .. }) => format!("refused {error}"),
        };
        assert_eq!(seen, expected, "{target}");
    }

    #[test]
    fn only_our_own_state_counts() {
        check("/callback?code=c&state=s-1", "c ");
        check(
            "/callback?code=c&state=s-1&iss=https%3A%2F%2Fa",
            "c https://a",
        );
        check(
            "/callback?error=access_denied&state=s-1",
            "refused access_denied",
        );
        check("/callback?code=c&state=s-2", "nothing");
        check("/callback?code=c&state=s-", "nothing");
        check("/callback?code=c", "nothing");
        check("/callback?code=c&state=s-2&state=s-1", "nothing");
        check("/callback?code=c&code=d&state=s-1", "nothing");
        check("/other?code=c&state=s-1", "nothing");
        check("http://evil/callback?state=s-2", "nothing");
    }
}
