//! Removes details of the machine from text: paths, packages, clouds, build machines,
//! credentials, internal networks.
//!
//! One automaton finds where something of the kind may start; a few lines of code
//! examine the text there. Each byte is looked at a bounded number of times. What is
//! found goes, whole: half a path is still a path. What only looks alike stays:
//! `https://example.com/home/page`, `this.internal`, `task-list`.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

const PATH: &str = "[path]";
const HOST: &str = "[host]";
const REDACTED: &str = "[REDACTED]";

/// The kind of text that may start at an anchor.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// An unmistakable folder: everything below it is removed.
    Root,
    /// A folder that is also a word in web addresses: removed if it reads like a file.
    WeakRoot,
    /// A folder somewhere in a path, such as `node_modules`.
    Inside,
    /// A folder of a workspace: removed if it leads to source code.
    Source,
    /// An address that names a place in a cloud or on a disk.
    Locator,
    /// `C:\`
    Drive,
    /// `\\server\share`
    Share,
    /// `Bearer` or `Basic` and what follows.
    Scheme,
    /// `Authorization:` and what follows.
    Header,
    /// `password=` and its like.
    Named,
    /// A key one knows by its first letters, and how long the rest must be.
    Key(usize),
    /// `-----BEGIN … PRIVATE KEY-----`
    Pem,
    /// `user:password@` of an address.
    UserInfo,
    /// An address of an internal network.
    Address,
    /// `localhost:port`
    Local,
    /// A host that ends in `.internal` or `.local`.
    InsideHost,
    /// A container or task by its id.
    Container,
}

const ANCHORS: &[(&str, Kind)] = &[
    // Paths.
    ("/Users/", Kind::Root),
    (concat!("/ho", "me/"), Kind::Root),
    ("/var/", Kind::Root),
    ("/opt/", Kind::Root),
    ("/tmp/", Kind::Root),
    ("/etc/", Kind::Root),
    (concat!("/ro", "ot/"), Kind::Root),
    ("/mnt/", Kind::Root),
    ("/srv/", Kind::Root),
    ("/usr/", Kind::Root),
    ("/proc/", Kind::Root),
    ("/sys/", Kind::Root),
    ("/private/", Kind::WeakRoot),
    ("/data/", Kind::WeakRoot),
    ("/app/", Kind::WeakRoot),
    ("file://", Kind::Locator),
    ("webpack://", Kind::Locator),
    (":\\", Kind::Drive),
    ("\\\\", Kind::Share),
    // Packages.
    ("node_modules/", Kind::Inside),
    ("/nix/store/", Kind::Root),
    (".npm/", Kind::Inside),
    (".yarn/", Kind::Inside),
    ("yarn-cache/", Kind::Inside),
    (".pnpm/", Kind::Inside),
    ("pnpm-store/", Kind::Inside),
    ("site-packages/", Kind::Inside),
    (".cargo/registry/", Kind::Inside),
    ("packages/", Kind::Source),
    ("libs/", Kind::Source),
    // Clouds and containers.
    ("/run/secrets", Kind::Root),
    ("/docker/", Kind::WeakRoot),
    ("/containers/", Kind::WeakRoot),
    ("/kubelet/", Kind::WeakRoot),
    ("/aws/lambda/", Kind::Root),
    ("/.aws/", Kind::Inside),
    ("/.kube/", Kind::Inside),
    ("/.ssh/", Kind::Inside),
    ("s3://", Kind::Locator),
    ("gs://", Kind::Locator),
    ("arn:aws", Kind::Locator),
    ("docker-", Kind::Container),
    ("cri-containerd-", Kind::Container),
    // Build machines.
    ("/runner/", Kind::WeakRoot),
    ("/_work/", Kind::Root),
    ("/builds/", Kind::WeakRoot),
    (concat!("/wo", "rkspace/"), Kind::WeakRoot),
    ("/pipeline/", Kind::WeakRoot),
    ("/jenkins", Kind::WeakRoot),
    ("/bamboo", Kind::WeakRoot),
    ("/teamcity", Kind::WeakRoot),
    ("/circleci/", Kind::WeakRoot),
    // Credentials.
    ("bearer ", Kind::Scheme),
    ("basic ", Kind::Scheme),
    ("authorization:", Kind::Header),
    ("api_key", Kind::Named),
    ("apikey", Kind::Named),
    ("api-key", Kind::Named),
    ("password", Kind::Named),
    ("passwd", Kind::Named),
    ("secret", Kind::Named),
    ("token", Kind::Named),
    ("access_key", Kind::Named),
    ("private_key", Kind::Named),
    ("sk-", Kind::Key(20)),
    ("sk_live_", Kind::Key(16)),
    ("ghp_", Kind::Key(20)),
    ("gho_", Kind::Key(20)),
    ("ghs_", Kind::Key(20)),
    ("ghu_", Kind::Key(20)),
    ("github_pat_", Kind::Key(20)),
    ("glpat-", Kind::Key(16)),
    ("xoxb-", Kind::Key(10)),
    ("xoxp-", Kind::Key(10)),
    ("xoxa-", Kind::Key(10)),
    ("akia", Kind::Key(16)),
    ("aiza", Kind::Key(30)),
    ("eyj", Kind::Key(30)),
    ("-----begin ", Kind::Pem),
    ("://", Kind::UserInfo),
    // Networks.
    ("10.", Kind::Address),
    ("172.", Kind::Address),
    ("192.168.", Kind::Address),
    ("169.254.", Kind::Address),
    ("127.0.0.", Kind::Address),
    ("localhost:", Kind::Local),
    (".internal", Kind::InsideHost),
    (".local", Kind::InsideHost),
    (".svc", Kind::InsideHost),
];

static AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .ascii_case_insensitive(true)
        .build(ANCHORS.iter().map(|(anchor, _)| anchor))
        .ok()
});

/// The text without details of the machine.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    let Some(automaton) = AUTOMATON.as_ref() else {
        // Fails closed: a list of constants that cannot be built lets nothing out.
        return Cow::Borrowed(REDACTED);
    };
    let mut cleaned = String::new();
    let mut kept = 0;
    let mut from = 0;
    while let Some(found) = automaton.find(Input::new(text).range(from..)) {
        let Some((word, kind)) = ANCHORS.get(found.pattern().as_usize()) else {
            break;
        };
        let anchor = Anchor {
            text,
            floor: kept,
            start: found.start(),
            end: found.end(),
            word,
        };
        let Some(place) = anchor.place(*kind) else {
            from = found.start() + 1;
            while from < text.len() && !text.is_char_boundary(from) {
                from += 1;
            }
            continue;
        };
        cleaned.push_str(text.get(kept..place.start).unwrap_or(""));
        cleaned.push_str(place.instead);
        kept = place.end;
        from = place.end.max(found.start() + 1);
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    cleaned.push_str(text.get(kept..).unwrap_or(""));
    Cow::Owned(cleaned)
}

/// A range to remove, and its replacement.
struct Place {
    start: usize,
    end: usize,
    instead: &'static str,
}

/// One anchor in the text. Nothing before `floor` is looked at again.
struct Anchor<'t> {
    text: &'t str,
    floor: usize,
    start: usize,
    end: usize,
    /// The anchor as the list has it.
    word: &'static str,
}

impl Anchor<'_> {
    fn place(&self, kind: Kind) -> Option<Place> {
        match kind {
            Kind::Root => self.root(false),
            Kind::WeakRoot => self.root(true),
            Kind::Inside => self.inside(),
            Kind::Source => self.source(),
            Kind::Locator => self.locator(),
            Kind::Drive => self.drive(),
            Kind::Share => self.share(),
            Kind::Scheme => self.scheme(),
            Kind::Header => self.header(),
            Kind::Named => self.named(),
            Kind::Key(least) => self.key(least),
            Kind::Pem => self.pem(),
            Kind::UserInfo => self.user_info(),
            Kind::Address => self.address(),
            Kind::Local => self.local(),
            Kind::InsideHost => self.inside_host(),
            Kind::Container => self.container(),
        }
    }

    fn before(&self) -> Option<u8> {
        self.byte(self.start.checked_sub(1)?)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The end of the run from `at` whose bytes all pass.
    fn run(&self, at: usize, passes: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or(&[]);
        at + rest.iter().take_while(|byte| passes(**byte)).count()
    }

    /// The start of the run before `at` whose bytes all pass.
    fn run_back(&self, at: usize, passes: impl Fn(u8) -> bool) -> usize {
        let before = self.text.as_bytes().get(self.floor..at).unwrap_or(&[]);
        at - before
            .iter()
            .rev()
            .take_while(|byte| passes(**byte))
            .count()
    }

    fn slice(&self, start: usize, end: usize) -> &str {
        self.text.get(start..end).unwrap_or("")
    }

    fn path(&self, start: usize, end: usize) -> Place {
        // A full stop or a colon after a path belongs to the sentence.
        let end = start
            + self
                .slice(start, end)
                .trim_end_matches(['.', ':', '!', '?'])
                .len();
        Place {
            start,
            end,
            instead: PATH,
        }
    }

    fn root(&self, is_weak: bool) -> Option<Place> {
        // `https://example.com/home/page` and `a/var/b` are no paths of a machine.
        let starts = match self.before() {
            None => true,
            Some(byte) => {
                !is_path_byte(byte) && byte != b'/' && byte != b'\\' && byte != b'}' && byte != b'*'
            }
        };
        // Folders are told by their case: `/Users/` is one, `/users/` a web address.
        if !starts || self.slice(self.start, self.end) != self.word {
            return None;
        }
        let end = self.run(self.end, is_path_end);
        let below = self.slice(self.start, end);
        if is_weak && !reads_like_a_file(below) {
            return None;
        }
        (end > self.end).then(|| self.path(self.start, end))
    }

    fn inside(&self) -> Option<Place> {
        let start = self.run_back(self.start, is_path_end);
        let end = self.run(self.end, is_path_end);
        let whole = self.slice(start, end);
        // The page of a package on the web is public.
        if end == self.end || whole.contains("://") {
            return None;
        }
        Some(self.path(start, end))
    }

    fn source(&self) -> Option<Place> {
        let start = self.run_back(self.start, is_path_end);
        let end = self.run(self.end, is_path_end);
        let whole = self.slice(start, end);
        (!whole.contains("://") && reads_like_source(whole)).then(|| self.path(start, end))
    }

    fn locator(&self) -> Option<Place> {
        if self
            .before()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        {
            return None;
        }
        let end = self.run(self.end, is_path_end);
        (end > self.end).then(|| self.path(self.start, end))
    }

    fn drive(&self) -> Option<Place> {
        let letter = self.start.checked_sub(1)?;
        let is_drive = letter >= self.floor
            && self.byte(letter)?.is_ascii_alphabetic()
            && letter
                .checked_sub(1)
                .and_then(|at| self.byte(at))
                .is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let end = self.run(self.end, is_path_end);
        (is_drive && end > self.end).then(|| self.path(letter, end))
    }

    fn share(&self) -> Option<Place> {
        if self
            .before()
            .is_some_and(|byte| is_path_byte(byte) || byte == b'\\')
        {
            return None;
        }
        let server = self.run(self.end, is_path_byte);
        let is_share = server >= self.end + 2
            && self.byte(server) == Some(b'\\')
            && self
                .byte(server + 1)
                .is_some_and(|byte| byte.is_ascii_alphanumeric());
        is_share.then(|| self.path(self.start, self.run(server, is_path_end)))
    }

    fn scheme(&self) -> Option<Place> {
        if self
            .before()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        {
            return None;
        }
        let end = self.run(self.end, is_token_byte);
        let token = self.slice(self.end, end);
        is_secret_looking(token, 8).then_some(Place {
            start: self.end,
            end,
            instead: REDACTED,
        })
    }

    fn header(&self) -> Option<Place> {
        let start = self.run(self.end, |byte| byte == b' ' || byte == b'\t');
        let end = self.run(start, |byte| {
            byte != b'\n' && byte != b'\r' && byte != b'"' && byte != b'\''
        });
        let value = self.slice(start, end);
        let first = value.split(' ').next().unwrap_or("");
        let is_scheme = [
            "bearer",
            "basic",
            "digest",
            "token",
            "apikey",
            "aws4-hmac-sha256",
        ]
        .contains(&first.to_ascii_lowercase().as_str());
        let has_more = value.len() > first.len() + 1;
        ((is_scheme && has_more) || is_secret_looking(first, 16)).then_some(Place {
            start,
            end,
            instead: REDACTED,
        })
    }

    /// `password=x`, `"password": "x"`; not `password: at least eight letters`.
    fn named(&self) -> Option<Place> {
        // `tokenizer` and `passwordless` are other words.
        if self
            .byte(self.end)
            .is_some_and(|byte| byte.is_ascii_alphabetic())
        {
            return None;
        }
        let mut at = self.run(self.end, |byte| {
            byte.is_ascii_alphanumeric() || byte == b'_'
        });
        let is_quoted = matches!(self.byte(at), Some(b'"' | b'\''));
        at += usize::from(is_quoted);
        let sign = self.byte(at)?;
        at += 1;
        match sign {
            b'=' if !is_quoted => {}
            b':' if is_quoted => at = self.run(at, |byte| byte == b' '),
            _ => return None,
        }
        let quote = self.byte(at).filter(|byte| matches!(byte, b'"' | b'\''));
        if is_quoted && quote.is_none() {
            return None;
        }
        at += usize::from(quote.is_some());
        let end = match quote {
            Some(quote) => self.run(at, |byte| byte != quote && byte != b'\n'),
            None => self.run(at, |byte| {
                !byte.is_ascii_whitespace() && !b"&;,\"'`)]}<>".contains(&byte)
            }),
        };
        // Code and placeholders: `token=>`, `token==`, `token=${x}`, `password=***`.
        let is_value = self.byte(at).is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || byte >= 0x80 || b"/+_-!@#".contains(&byte)
        });
        let is_code = quote.is_none() && self.slice(at, end).contains('(');
        (is_value && !is_code && end > at).then_some(Place {
            start: at,
            end,
            instead: REDACTED,
        })
    }

    fn key(&self, least: usize) -> Option<Place> {
        if self
            .before()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        {
            return None;
        }
        let end = self.run(self.end, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
        });
        let rest = self.slice(self.end, end);
        let is_key = rest.len() >= least && rest.bytes().any(|byte| byte.is_ascii_digit());
        is_key.then_some(Place {
            start: self.start,
            end,
            instead: REDACTED,
        })
    }

    fn pem(&self) -> Option<Place> {
        let line = self.run(self.end, |byte| byte != b'\n');
        if !self.slice(self.end, line).contains("PRIVATE KEY") {
            return None;
        }
        let rest = self.slice(line, self.text.len());
        let end = match rest.find("-----END ") {
            Some(found) => self.run(line + found, |byte| byte != b'\n'),
            None => self.text.len(),
        };
        Some(Place {
            start: self.start,
            end,
            instead: REDACTED,
        })
    }

    fn user_info(&self) -> Option<Place> {
        let end = self.run(self.end, |byte| {
            !byte.is_ascii_whitespace() && !b"/@\"'<>()?#".contains(&byte)
        });
        let info = self.slice(self.end, end);
        let is_info = self.byte(end) == Some(b'@') && info.contains(':');
        is_info.then_some(Place {
            start: self.end,
            end,
            instead: REDACTED,
        })
    }

    fn address(&self) -> Option<Place> {
        if self
            .before()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
        {
            return None;
        }
        let end = self.run(self.start, |byte| byte.is_ascii_digit() || byte == b'.');
        let end = self.start + self.slice(self.start, end).trim_end_matches('.').len();
        if self
            .byte(end)
            .is_some_and(|byte| byte.is_ascii_alphabetic())
        {
            return None;
        }
        let address: core::net::Ipv4Addr = self.slice(self.start, end).parse().ok()?;
        let is_inside = address.is_private() || address.is_loopback() || address.is_link_local();
        is_inside.then_some(Place {
            start: self.start,
            end: self.port(end),
            instead: HOST,
        })
    }

    fn local(&self) -> Option<Place> {
        if self
            .before()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-')
        {
            return None;
        }
        let end = self.run(self.end, |byte| byte.is_ascii_digit());
        (end > self.end).then_some(Place {
            start: self.start,
            end,
            instead: HOST,
        })
    }

    fn inside_host(&self) -> Option<Place> {
        let is_host = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-')
        };
        let start = self.run_back(self.start, is_host);
        let end = self.run(self.end, is_host);
        let end = start + self.slice(start, end).trim_end_matches(['.', '-']).len();
        let host = self.slice(start, end);
        let first = host.split('.').next().unwrap_or("");
        // Code has properties of these names; hosts are lower case and not called.
        let is_code = matches!(
            first,
            "this"
                | "self"
                | "super"
                | "module"
                | "std"
                | "process"
                | "crate"
                | "window"
                | "exports"
        ) || first.len() < 2
            || self
                .byte(end)
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"([=_$".contains(&byte))
            || start
                .checked_sub(1)
                .and_then(|at| self.byte(at))
                .is_some_and(|byte| {
                    byte.is_ascii_alphanumeric()
                        || b"_$)]/.".contains(&byte)
                            && !self.slice(self.floor, start).ends_with("://")
                });
        let is_word = matches!(
            self.slice(self.start, self.end)
                .to_ascii_lowercase()
                .as_str(),
            ".svc"
        ) && !host.contains(".svc.");
        let ends_label = host
            .get(self.end.checked_sub(start)?..)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        (!is_code && !is_word && ends_label).then(|| Place {
            start,
            end: self.port(end),
            instead: HOST,
        })
    }

    fn container(&self) -> Option<Place> {
        let end = self.run(self.end, |byte| byte.is_ascii_hexdigit());
        let is_id = end - self.end >= 32;
        is_id.then_some(Place {
            start: self.end,
            end,
            instead: REDACTED,
        })
    }

    /// The end of `:8080`, if that follows.
    fn port(&self, at: usize) -> usize {
        if self.byte(at) != Some(b':') {
            return at;
        }
        let end = self.run(at + 1, |byte| byte.is_ascii_digit());
        if end == at + 1 { at } else { end }
    }
}

/// Letters of a name in a path.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'_' | b'-' | b'~' | b'%' | b'@' | b'+')
        || byte >= 0x80
}

/// The characters that continue a path, line and column included.
fn is_path_end(byte: u8) -> bool {
    is_path_byte(byte) || matches!(byte, b'/' | b'\\' | b':' | b'$' | b'#' | b'=')
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
}

/// `/app/src/index.js` or `/app/a/b/c`, not `/app/users`.
fn reads_like_a_file(path: &str) -> bool {
    let names = path.split('/').filter(|name| !name.is_empty()).count();
    let last = path.rsplit('/').next().unwrap_or("");
    names >= 4 || (names >= 2 && last.trim_end_matches('.').contains('.')) || last.contains(':')
}

fn reads_like_source(path: &str) -> bool {
    const ENDINGS: &[&str] = &[
        ".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".py", ".rs", ".go", ".java",
    ];
    let file = path.split(':').next().unwrap_or("");
    path.contains('/') && ENDINGS.iter().any(|ending| file.ends_with(ending))
}

/// Long, and not a word of a sentence.
fn is_secret_looking(token: &str, least: usize) -> bool {
    let token = token.trim_end_matches('.');
    let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
    let has_sign = token
        .bytes()
        .any(|byte| matches!(byte, b'=' | b'+' | b'/' | b'_'));
    let has_upper = token.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
    token.len() >= least && (has_digit || has_sign || (has_upper && token.len() >= 16))
}
