//! `ringfence studio`: a code to sign in with at the Studio of a running server, and its page
//! in the browser. The code is shown here and nowhere else: never in an address.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use engine::limit::SIGN_IN_CODE_MINUTES;
use serde_json::json;

use crate::arguments::StudioArguments;
use crate::output::console;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring::{self, served};

/// How long a server may take to take a connection.
const CONNECT: Duration = Duration::from_secs(2);

/// How long the system may take to say that it knows no browser.
const OPENED: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &StudioArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_of_pages(&arguments.home)?;
    let (url, is_there) = match &arguments.url {
        Some(url) => (url.trim_end_matches('/').to_owned(), answers(url)),
        None => {
            let serve = &engine.registry().current().config.serve;
            match served::base_url(engine.home(), serve)? {
                Some(url) => (url, true),
                None => return Ok(not_running(printer)),
            }
        }
    };
    let url = format!("{url}/");
    let code = engine.people().make_code();
    let code = code.context("no sign-in code was created")?;
    let is_opened = is_there && !arguments.no_open && console::is_here() && open(&url);
    if printer.format() == Format::Json {
        printer.json(&json!({
            "url": url,
            "code": code.reveal(),
            "expiresInSeconds": SIGN_IN_CODE_MINUTES * 60,
            "running": is_there,
            "opened": is_opened,
        }));
        return Ok(if is_there { Exit::Done } else { Exit::No });
    }
    printer.line(&format!("Studio: {}", printer.styled(Style::Bold, &url)));
    printer.line(&format!(
        "Code: {} (once, within {SIGN_IN_CODE_MINUTES} minutes)",
        code.reveal()
    ));
    if !is_there {
        printer.note("no server answers there; is that its address?");
        return Ok(Exit::No);
    }
    Ok(Exit::Done)
}

/// No server of this home tells where it is.
///
/// Attack: another program listens at the address of the settings, and a person types a code
/// into its page that signs the owner in. So there is no code without a server of this home,
/// or an address that the person named.
fn not_running(printer: &mut Printer) -> Exit {
    if printer.format() == Format::Json {
        printer.json(&json!({
            "url": null,
            "code": null,
            "expiresInSeconds": null,
            "running": false,
            "opened": false,
        }));
    }
    printer.note("no server of this home runs, so no code was made; start one with `ringfence serve`, or name the address of one with `--url`");
    Exit::No
}

/// Whether something listens there.
fn answers(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = match has_port {
        true => authority.to_owned(),
        false if scheme == "https" => format!("{authority}:443"),
        false => format!("{authority}:80"),
    };
    let Ok(addresses) = address.to_socket_addrs() else {
        return false;
    };
    let mut addresses = addresses.take(4);
    addresses.any(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
}

/// Opens the page in the person's browser, if the system knows one.
fn open(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    // Its output must not reach the terminal; it may run as long as the browser does.
    let (sender, answered) = mpsc::channel();
    let address = url.to_owned();
    std::thread::spawn(move || {
        let ran = Command::new(program).arg(address).output();
        let _ = sender.send(ran.is_ok_and(|ran| ran.status.success()));
    });
    answered.recv_timeout(OPENED).unwrap_or(true)
}
