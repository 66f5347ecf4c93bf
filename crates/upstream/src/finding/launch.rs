//! How a server is started or reached: versions that may change, rights it does not
//! need, shells, secrets in the open, addresses without encryption.

use url::{Host, Url};

use super::secret::{is_random, is_secret, shown};
use super::{FindingCode, Findings, UpstreamFinding};

/// How a server is started or reached, as a configuration has it. Values that are
/// references to the secret store are left out by the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchSpec<'a> {
    /// The program and its arguments; empty for a server that is reached by a URL.
    pub command: &'a [String],
    /// Variables with plain values.
    pub env: &'a [(String, String)],
    /// The address.
    pub url: Option<&'a str>,
    /// Headers with plain values.
    pub headers: &'a [(String, String)],
}

/// The findings about the way a server is started or reached.
#[must_use]
pub fn of_launch(spec: &LaunchSpec<'_>) -> Vec<UpstreamFinding> {
    let mut findings = Findings::new(None);
    if let Some((program, arguments)) = spec.command.split_first() {
        check_command(&mut findings, program, arguments);
        check_arguments(&mut findings, arguments);
    }
    for (name, value) in spec.env {
        check_value(&mut findings, &format!("env.{name}"), name, value);
    }
    for (name, value) in spec.headers {
        check_value(&mut findings, &format!("headers.{name}"), name, value);
    }
    if let Some(url) = spec.url {
        check_url(&mut findings, url);
    }
    findings.all
}

/// Whether a command runs an exact version: no package runner, or one with a version.
#[must_use]
pub fn is_exact(command: &[String]) -> bool {
    let spec = LaunchSpec {
        command,
        ..LaunchSpec::default()
    };
    of_launch(&spec)
        .iter()
        .all(|finding| finding.code != FindingCode::UnpinnedVersion)
}

/// The name of a program without its folder and its ending.
fn base_name(program: &str) -> String {
    let name = program
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(program)
        .to_lowercase();
    let endings = [".exe", ".cmd", ".bat", ".ps1"];
    let bare = endings.iter().find_map(|ending| name.strip_suffix(ending));
    bare.unwrap_or(&name).to_owned()
}

fn check_command(findings: &mut Findings, program: &str, arguments: &[String]) {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let name = base_name(program);
    match (name.as_str(), words.as_slice()) {
        ("npx" | "bunx" | "pnpx", rest) => check_package(findings, rest, is_exact_npm),
        ("npm", ["exec" | "x", rest @ ..])
        | ("pnpm" | "yarn", ["dlx", rest @ ..])
        | ("bun", ["x", rest @ ..]) => check_package(findings, rest, is_exact_npm),
        ("uvx", rest)
        | ("uv", ["tool", "run", rest @ ..] | ["x", rest @ ..])
        | ("pipx", ["run", rest @ ..]) => check_package(findings, rest, is_exact_python),
        ("go", ["run", rest @ ..]) => check_package(findings, rest, is_exact_go),
        ("deno", ["run", rest @ ..]) => check_package(findings, rest, is_exact_deno),
        ("docker" | "podman" | "nerdctl", ["run", rest @ ..]) => check_container(findings, rest),
        // A shell's own words decide what runs, so they are looked into.
        ("sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "cmd" | "powershell" | "pwsh", rest) => {
            check_shell(findings, program, rest);
        }
        ("sudo" | "doas" | "su" | "runas" | "pkexec", _) => {
            let message = "the server is started with the rights of an administrator";
            findings.add(
                FindingCode::Privileged,
                "command",
                program,
                0..program.len(),
                message,
            );
        }
        // They start what follows them, and would otherwise hide it.
        ("env" | "nice" | "timeout" | "nohup" | "stdbuf", rest) => {
            check_wrapped(findings, &name, rest);
        }
        _ => {}
    }
}

/// Options of such programs that take the next word, by their letters and in full.
fn wrapper_options(wrapper: &str) -> (&'static str, &'static [&'static str]) {
    match wrapper {
        "env" => ("uCa", &["--unset", "--chdir", "--argv0"]),
        "nice" => ("n", &["--adjustment"]),
        "timeout" => ("sk", &["--signal", "--kill-after"]),
        "stdbuf" => ("ioe", &["--input", "--output", "--error"]),
        _ => ("", &[]),
    }
}

/// A program that starts another: the first word that is no option, value of one, or setting.
fn check_wrapped(findings: &mut Findings, wrapper: &str, words: &[&str]) {
    let (letters, in_full) = wrapper_options(wrapper);
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if let Some(line) = split_line(wrapper, word, rest) {
            return check_wrapped(findings, wrapper, &line);
        }
        let letter = match word.strip_prefix('-') {
            Some(cluster) if !cluster.starts_with('-') => cluster
                .find(|letter| letters.contains(letter))
                .filter(|at| at + 1 == cluster.len()),
            Some(_) | None => None,
        };
        if letter.is_some() || in_full.contains(word) {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let is_program = !word.starts_with('-')
            && !word.contains('=')
            // `timeout 30 npx …`: the number is the wrapper's.
            && !word.starts_with(|c: char| c.is_ascii_digit());
        if is_program {
            let rest: Vec<String> = rest.iter().map(|word| (*word).to_owned()).collect();
            return check_command(findings, word, &rest);
        }
    }
}

/// The words of `env -S`, which splits one word into a command line, with those behind it.
fn split_line<'a>(wrapper: &str, word: &'a str, rest: &[&'a str]) -> Option<Vec<&'a str>> {
    let cluster = word.strip_prefix('-').filter(|_| wrapper == "env")?;
    let joined = match cluster.strip_prefix("-split-string") {
        Some("") => "",
        Some(value) => value.strip_prefix('=')?,
        None if cluster.starts_with('-') => return None,
        None => {
            let (before, value) = cluster.split_once('S')?;
            // `-uS` is a variable with that name.
            if before.contains(['u', 'C', 'a']) {
                return None;
            }
            value
        }
    };
    let (line, rest) = match joined {
        "" => rest.split_first().map(|(line, rest)| (*line, rest))?,
        joined => (joined, rest),
    };
    Some(
        line.split_whitespace()
            .chain(rest.iter().copied())
            .collect(),
    )
}

fn check_shell(findings: &mut Findings, program: &str, words: &[&str]) {
    const LINES: &[&str] = &[
        "-c",
        "/c",
        "/k",
        "-command",
        "-lc",
        "-ic",
        "-encodedcommand",
        "-e",
    ];
    let reads_line = |word: &str| LINES.contains(&word.to_lowercase().as_str());
    if let Some(at) = words.iter().position(|word| reads_line(word)) {
        let line = words.get(at + 1..).unwrap_or_default().join(" ");
        let message = format!("`{}` reads a command line", base_name(program));
        findings.add(FindingCode::Shell, "command", &line, 0..line.len(), message);
        let inner: Vec<&str> = line.split_whitespace().collect();
        if let Some((program, rest)) = inner.split_first() {
            let rest: Vec<String> = rest.iter().map(|word| (*word).to_owned()).collect();
            // One line deep: a shell within a shell is reported as the first.
            let is_shell = matches!(base_name(program).as_str(), "sh" | "bash" | "cmd" | "zsh");
            if !is_shell {
                check_command(findings, program, &rest);
            }
        }
    }
}

/// Options of package runners that take the next word.
const WITH_VALUE: &[&str] = &[
    "--cache",
    "--registry",
    "-c",
    "--call",
    "--python",
    "--index-url",
    "--index",
    "--userconfig",
    "--config",
    "-i",
    "--directory",
];

fn check_package(findings: &mut Findings, words: &[&str], is_exact: fn(&str) -> bool) {
    for package in packages(words).into_iter().filter(|one| !is_exact(one)) {
        let message = "the version of the package is not exact, so what runs can change";
        let span = 0..package.len();
        findings.add(
            FindingCode::UnpinnedVersion,
            "command",
            package,
            span,
            message,
        );
    }
}

/// The packages a runner installs: every one of `--from` or `--package`, else the first word
/// that is no option; and those of `--with`, which run in the same process.
fn packages<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut words = words.iter();
    let (mut named, mut beside) = (Vec::new(), Vec::new());
    let mut first = None;
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if word.starts_with('-') => (option, Some(value)),
            Some(_) | None => (*word, None),
        };
        match option {
            // What `--from` names is run, whatever word follows.
            "--package" | "-p" | "--from" | "--spec" => {
                named.extend(value.or_else(|| words.next().copied()));
            }
            "--with" => {
                let value = value.or_else(|| words.next().copied()).unwrap_or_default();
                beside.extend(value.split(',').filter(|one| !one.is_empty()));
            }
            option if WITH_VALUE.contains(&option) && value.is_none() => {
                words.next();
            }
            option if option.starts_with('-') => {}
            _ => {
                first = Some(*word);
                break;
            }
        }
    }
    let mut all: Vec<_> = match named.is_empty() {
        true => first.into_iter().collect(),
        false => named,
    };
    all.extend(beside);
    all
}

fn is_local(package: &str) -> bool {
    package.starts_with(['.', '/', '~']) || package.starts_with("file:")
}

/// `1.2.3`, with a suffix; no range, no tag, no part of a version.
fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let core = text.split(['-', '+']).next().unwrap_or("");
    let numbers: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    // Parts of a version, such as `1` or `1.2`, move with each release.
    numbers.len() >= 3 && numbers.iter().all(is_number) && text.chars().all(fits)
}

/// A commit is exact, a branch is not.
fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_exact_npm(package: &str) -> bool {
    if is_local(package) {
        return true;
    }
    if package.contains("://") || package.starts_with("github:") || package.starts_with("git+") {
        return package
            .rsplit_once('#')
            .is_some_and(|(_, commit)| is_commit(commit));
    }
    // A scope begins with `@` and is no version.
    let version = package.get(1..).and_then(|rest| rest.rsplit_once('@'));
    version.is_some_and(|(_, version)| is_version(version))
}

fn is_exact_python(package: &str) -> bool {
    if is_local(package) {
        return true;
    }
    if package.contains("://") || package.starts_with("git+") {
        let commit = package.rsplit_once('@').map(|(_, commit)| commit);
        return commit.is_some_and(|commit| is_commit(commit.split('#').next().unwrap_or("")));
    }
    let version = package.split_once("==").or_else(|| package.split_once('@'));
    version.is_some_and(|(_, version)| is_release(version))
}

/// Versions of Python may have two numbers; `*` and lists are no versions.
fn is_release(version: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".+!-".contains(c);
    version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains('.')
        && version.chars().all(fits)
}

fn is_exact_go(package: &str) -> bool {
    let version = package.rsplit_once('@');
    is_local(package)
        || version.is_some_and(|(_, version)| is_version(version) || is_commit(version))
}

fn is_exact_deno(module: &str) -> bool {
    match module
        .strip_prefix("npm:")
        .or_else(|| module.strip_prefix("jsr:"))
    {
        Some(package) => is_exact_npm(package.trim_start_matches('/')),
        None if module.contains("://") => module
            .rsplit('@')
            .next()
            .is_some_and(|rest| is_version(rest.split('/').next().unwrap_or(""))),
        None => true,
    }
}

/// Options of `run` without a value; every other one takes the next word, unless it has
/// its value behind `=`.
const ALONE: &[&str] = &[
    "--rm",
    "-i",
    "-t",
    "-it",
    "-d",
    "--detach",
    "--interactive",
    "--tty",
    "--init",
    "--read-only",
    "--privileged",
    "--no-healthcheck",
    "--quiet",
    "-q",
    "--publish-all",
    "-P",
];

fn check_container(findings: &mut Findings, words: &[&str]) {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            check_image(findings, word);
            return;
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, value),
            None if ALONE.contains(word) => (*word, ""),
            None => (*word, words.next().copied().unwrap_or("")),
        };
        check_option(findings, option, value);
    }
}

fn check_option(findings: &mut Findings, option: &str, value: &str) {
    let shown = format!("{option} {value}");
    let shown = shown.trim_end();
    let mut add =
        |code, message: &str| findings.add(code, "command", shown, 0..shown.len(), message);
    match option {
        "--privileged" => add(
            FindingCode::Privileged,
            "the container has all rights of the host",
        ),
        "--network" | "--net" | "--pid" | "--ipc" | "--uts" | "--userns" if value == "host" => {
            add(
                FindingCode::Privileged,
                "the container shares a namespace of the host",
            );
        }
        "--cap-add" | "--device" | "--security-opt" => {
            add(
                FindingCode::Privileged,
                "the container has more rights than others",
            );
        }
        // Before the folder: with the socket of the engine a container is as good as root.
        "-v" | "--volume" | "--mount" if value.contains("docker.sock") => {
            add(
                FindingCode::Privileged,
                "the container commands the container engine",
            );
        }
        "-v" | "--volume" | "--mount" if is_host_folder(value) => {
            add(
                FindingCode::HostMount,
                "a folder of the host is inside the container",
            );
        }
        _ => {}
    }
}

/// A bind of a folder; a named volume is none.
fn is_host_folder(value: &str) -> bool {
    let source = value.split(',').find_map(|part| {
        part.strip_prefix("source=")
            .or_else(|| part.strip_prefix("src="))
    });
    let source = source.unwrap_or(value);
    source.starts_with(['/', '~', '.', '$']) || source.get(1..3) == Some(":\\")
}

fn check_image(findings: &mut Findings, image: &str) {
    if !image.contains("@sha256:") {
        let message = "the image has no digest, so what runs can change";
        findings.add(
            FindingCode::UnpinnedVersion,
            "command",
            image,
            0..image.len(),
            message,
        );
    }
}

/// Secrets among the arguments: `--token=…`, `--token …`, `KEY=…`, or by shape.
fn check_arguments(findings: &mut Findings, arguments: &[String]) {
    let mut name = "";
    for (index, argument) in arguments.iter().enumerate() {
        let field = format!("arguments[{index}]");
        match argument.split_once('=') {
            Some((key, value)) => check_value(findings, &field, key, value),
            None => check_value(findings, &field, name, argument),
        }
        if argument.contains("://") {
            check_url_secret(findings, &field, argument);
        }
        name = if argument.starts_with('-') {
            argument
        } else {
            ""
        };
    }
}

fn check_value(findings: &mut Findings, field: &str, name: &str, value: &str) {
    if value.contains("://") {
        return check_url_secret(findings, field, value);
    }
    if is_secret(name, value) {
        add_secret(findings, field, value);
    }
}

fn add_secret(findings: &mut Findings, field: &str, value: &str) {
    let shown = shown(value);
    let message = "a secret stands in plain text";
    findings.add(
        FindingCode::PlainSecret,
        field,
        &shown,
        0..shown.len(),
        message,
    );
}

fn check_url(findings: &mut Findings, raw_url: &str) {
    check_url_secret(findings, "url", raw_url);
    let Ok(url) = Url::parse(raw_url) else {
        return;
    };
    if url.scheme() == "http" && !is_loopback(&url) {
        let host = url.host_str().unwrap_or("");
        let message = "the address has no encryption";
        findings.add(FindingCode::PlainHttp, "url", host, 0..host.len(), message);
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A password, a key in the query or a random piece of the path: the address alone opens
/// the account.
fn check_url_secret(findings: &mut Findings, field: &str, raw_url: &str) {
    let Ok(url) = Url::parse(raw_url) else {
        return;
    };
    let password = url
        .password()
        .filter(|password| is_secret("password", password));
    let query = url
        .query_pairs()
        .find(|(name, value)| is_secret(name, value));
    let piece = url
        .path_segments()
        .into_iter()
        .flatten()
        .find(|piece| is_random(piece));
    let secret = password
        .map(str::to_owned)
        .or_else(|| query.map(|(_, value)| value.into_owned()))
        .or_else(|| piece.map(str::to_owned));
    if let Some(secret) = secret {
        add_secret(findings, field, &secret);
    }
}
