//! Where the server of a home is: what one that runs tells of itself comes before what the
//! settings say, because `serve --listen` goes past them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use mcp::http;
use model::config::ServeConfig;
use store::serving;

/// The address of the endpoint, as clients know it: of a server that runs, else by the settings.
pub(crate) fn mcp_url(home: &Path, serve: &ServeConfig) -> anyhow::Result<String> {
    let base = base_url(home, serve)?.unwrap_or_else(|| settings_url(serve));
    Ok(format!("{base}{}", http::PATH))
}

/// The address of a server that runs, without a path. Of several it is the one that the
/// settings describe, else the first.
///
/// Attack: another program listens at the address of the settings. It is never a server of
/// this home only because it answers.
pub(crate) fn base_url(home: &Path, serve: &ServeConfig) -> anyhow::Result<Option<String>> {
    let running = serving::running(home)?.into_iter();
    let urls: Vec<_> = running.map(|server| server.url).collect();
    let usual = settings_url(serve);
    let chosen = urls.iter().find(|url| **url == usual).or(urls.first());
    Ok(chosen.cloned())
}

/// The address that the settings give a server.
fn settings_url(serve: &ServeConfig) -> String {
    match &serve.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            // A wildcard address is for listening; clients connect to loopback.
            let listen: Result<SocketAddr, _> = serve.listen.parse();
            let listen = match listen {
                Ok(at) if at.ip().is_unspecified() => {
                    let here: IpAddr = match at.is_ipv4() {
                        true => Ipv4Addr::LOCALHOST.into(),
                        false => Ipv6Addr::LOCALHOST.into(),
                    };
                    SocketAddr::new(here, at.port()).to_string()
                }
                Ok(_) | Err(_) => serve.listen.clone(),
            };
            format!("http://{listen}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_settings_is_one_clients_can_reach() {
        let at = |listen: &str, public: Option<&str>| {
            let mut serve = model::config::Config::closed().serve;
            serve.listen = listen.to_owned();
            serve.public_url = public.map(str::to_owned);
            settings_url(&serve)
        };
        assert_eq!(at("127.0.0.1:9999", None), "http://127.0.0.1:9999");
        assert_eq!(at("0.0.0.0:7464", None), "http://127.0.0.1:7464");
        assert_eq!(at("[::]:7464", None), "http://[::1]:7464");
        let public = at("0.0.0.0:7464", Some("https://tools.example.com/"));
        assert_eq!(public, "https://tools.example.com");
    }
}
