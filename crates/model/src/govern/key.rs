//! Keys of callers: their format, and the rules for callers' names.
//!
//! `rf_<id>_<secret><checksum>`, and `rf_local_<secret><checksum>` for the owner's
//! own machine. The prefix lets scanners find a key that leaked; the checksum tells
//! a slip of the pen from a wrong key without looking anything up. Only the digest
//! of a key is ever kept.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The prefix of every key.
pub const PREFIX: &str = "rf_";
/// The prefix of the token of the owner's machine.
pub const LOCAL_PREFIX: &str = "rf_local_";
/// The prefix of a session's secret.
const SESSION_PREFIX: &str = "rfs_";
/// Letters of a code that a person types, five random bits each.
pub const CODE_CHARS: usize = 10;
/// Random bytes of a key's secret.
pub const SECRET_BYTES: usize = 32;
/// Random bytes of a key's id.
pub const ID_BYTES: usize = 5;
/// A caller's name, in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// Names that already have a meaning.
pub const NAMES_RESERVED: [&str; 3] = ["owner", "local", "stdio"];

const ID_CHARS: usize = 8;
const SECRET_CHARS: usize = 52;
const CHECKSUM_CHARS: usize = 8;
/// Digits and small letters without `i`, `l`, `o` and `u`, which people misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The digest of a key or token; only this is stored.
pub type KeyDigest = [u8; 32];

/// The role of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Calls tools. Cannot answer questions.
    Agent,
    /// Answers questions. Cannot call tools.
    Operator,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 2] = [Role::Agent, Role::Operator];

    /// The word in files and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Operator => "operator",
        }
    }

    /// The role a word means.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.word() == word)
    }
}

/// How a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnd {
    /// Its caller has another one.
    Replaced,
    /// Its caller has none.
    Revoked,
}

impl KeyEnd {
    /// The word in the store.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            KeyEnd::Replaced => "replaced",
            KeyEnd::Revoked => "revoked",
        }
    }

    /// The end a word means.
    #[must_use]
    pub fn from_word(word: &str) -> Option<KeyEnd> {
        let mut all = [KeyEnd::Replaced, KeyEnd::Revoked].into_iter();
        all.find(|end| end.word() == word)
    }
}

/// The record of a key that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerKey {
    /// The caller's name.
    pub name: String,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: i64,
    /// How it ended.
    pub end: KeyEnd,
}

impl FormerKey {
    /// A sentence for its client. Only a client that shows this very key gets it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let name = crate::text::elided(&self.name, NAME_CHARS_MAX);
        match self.end {
            KeyEnd::Replaced => format!(
                "the key of `{name}` was replaced, and the settings of that client still hold the old one: \
                 put the new key there, or create another with `ringfence keys rotate {name}`"
            ),
            KeyEnd::Revoked => format!(
                "the key of `{name}` was revoked, and the settings of that client still hold it: \
                 remove it there, or create another with `ringfence keys add {name}`"
            ),
        }
    }
}

/// The stored record of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Stays the same when the key is replaced.
    pub id: String,
    /// The caller's name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The digest of the whole key.
    pub digest: KeyDigest,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
}

impl KeyRecord {
    /// Whether its time is over.
    #[must_use]
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires| expires <= now_ms)
    }
}

/// A key or token in full. It is shown once and never printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The digest that is stored of it.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        digest(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// A new id, from random bytes.
#[must_use]
pub fn id(random: [u8; ID_BYTES]) -> String {
    spell(&random)
}

/// The key with this id, from random bytes.
#[must_use]
pub fn key(id: &str, random: [u8; SECRET_BYTES]) -> Secret {
    Secret(with_checksum(format!("{PREFIX}{id}_{}", spell(&random))))
}

/// The token of the owner's own machine, from random bytes.
#[must_use]
pub fn local_token(random: [u8; SECRET_BYTES]) -> Secret {
    Secret(with_checksum(format!("{LOCAL_PREFIX}{}", spell(&random))))
}

/// The secret of a person's session at the Studio, from random bytes. It is spelt like no
/// key, so neither is ever taken for the other.
#[must_use]
pub fn session_secret(random: [u8; SECRET_BYTES]) -> Secret {
    Secret(format!("{SESSION_PREFIX}{}", spell(&random)))
}

/// A session's secret as a browser sent it; nothing if it is not spelt like one.
#[must_use]
pub fn read_session_secret(text: &str) -> Option<Secret> {
    let secret = text.strip_prefix(SESSION_PREFIX)?;
    let is_whole = secret.len() == SECRET_CHARS && secret.bytes().all(is_of_alphabet);
    is_whole.then(|| Secret(text.to_owned()))
}

/// A code that a person types once to sign in, from random bytes: `K7Q2M-9XWRD`.
#[must_use]
pub fn sign_in_code(random: [u8; CODE_CHARS]) -> Secret {
    let letter = |byte: &u8| {
        // A byte has eight times as many values as there are letters, so no letter is
        // more likely.
        let letter = ALPHABET.get(usize::from(byte & 31)).copied();
        char::from(letter.unwrap_or(b'0')).to_ascii_uppercase()
    };
    let mut text: String = random.iter().map(letter).collect();
    text.insert(CODE_CHARS / 2, '-');
    Secret(text)
}

/// A code as a person typed it: letters in either case, spaces and dashes anywhere, and
/// letters that are misread taken for the digit they look like.
#[must_use]
pub fn read_sign_in_code(typed: &str) -> Option<Secret> {
    let mut plain = String::new();
    for letter in typed.chars().filter(|letter| !" -\t".contains(*letter)) {
        let letter = match letter.to_ascii_lowercase() {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        };
        let is_known = u8::try_from(letter).is_ok_and(is_of_alphabet);
        if !is_known || plain.len() >= CODE_CHARS {
            return None;
        }
        plain.push(letter.to_ascii_uppercase());
    }
    if plain.len() != CODE_CHARS {
        return None;
    }
    plain.insert(CODE_CHARS / 2, '-');
    Some(Secret(plain))
}

/// A token read from its file. A damaged file holds none.
#[must_use]
pub fn read_local_token(text: &str) -> Option<Secret> {
    let text = text.trim_end_matches('\n');
    (read(text) == Some(KeyForm::Local)).then(|| Secret(text.to_owned()))
}

/// What kind of credential a text is, judged by its spelling alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm<'a> {
    /// The token of the owner's own machine.
    Local,
    /// The key with this id.
    Key(&'a str),
}

/// Reads the spelling of a key or token. `None` if it is neither, or mistyped.
#[must_use]
pub fn read(text: &str) -> Option<KeyForm<'_>> {
    let end = text.len().checked_sub(CHECKSUM_CHARS)?;
    // Checked: the text is anyone's, and the cut may fall inside a character.
    let (body, given) = text.split_at_checked(end)?;
    // Not in constant time: the checksum follows from the text and is no secret.
    if checksum(body) != given {
        return None;
    }
    let is_secret =
        |secret: &str| secret.len() == SECRET_CHARS && secret.bytes().all(is_of_alphabet);
    // First, because it begins like a key whose id is `local`.
    if let Some(secret) = body.strip_prefix(LOCAL_PREFIX) {
        return is_secret(secret).then_some(KeyForm::Local);
    }
    let (id, secret) = body.strip_prefix(PREFIX)?.split_once('_')?;
    let is_id = id.len() == ID_CHARS && id.bytes().all(is_of_alphabet);
    (is_id && is_secret(secret)).then_some(KeyForm::Key(id))
}

/// The digest of a key or token.
#[must_use]
pub fn digest(text: &str) -> KeyDigest {
    Sha256::digest(text.as_bytes()).into()
}

/// Why a caller cannot have a name, in one sentence.
pub fn check_name(name: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let shown = crate::text::elided(name, NAME_CHARS_MAX);
    if name.is_empty() || name.len() > NAME_CHARS_MAX {
        return Err(format!(
            "`{shown}` cannot be a caller's name; it must have 1 to {NAME_CHARS_MAX} characters"
        ));
    }
    let starts_well = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !starts_well || !name.bytes().all(legal) {
        return Err(format!(
            "`{shown}` cannot be a caller's name; use letters, digits, `.`, `_` and `-`, and begin with a letter or digit"
        ));
    }
    if NAMES_RESERVED
        .iter()
        .any(|reserved| reserved.eq_ignore_ascii_case(name))
    {
        return Err(format!("`{shown}` is taken; choose another name"));
    }
    Ok(())
}

fn with_checksum(mut body: String) -> String {
    let checksum = checksum(&body);
    body.push_str(&checksum);
    body
}

fn checksum(body: &str) -> String {
    let digest = digest(body);
    spell(digest.first_chunk::<5>().unwrap_or(&[0; 5]))
}

fn is_of_alphabet(byte: u8) -> bool {
    ALPHABET.contains(&byte)
}

/// Five bits to a character, the last one filled up with zeros.
fn spell(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().saturating_mul(8).div_ceil(5));
    let (mut bits, mut count) = (0_u32, 0_u32);
    let mut push = |bits: u32| {
        let place = usize::try_from(bits & 31).unwrap_or(0);
        text.push(char::from(ALPHABET.get(place).copied().unwrap_or(b'0')));
    };
    for byte in bytes {
        // At most four bits are left over from the byte before.
        bits = (bits << 8 | u32::from(*byte)) & 0xfff;
        count += 8;
        while count >= 5 {
            count -= 5;
            push(bits >> count);
        }
    }
    if count > 0 {
        push(bits << (5 - count));
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code = sign_in_code([0, 1, 2, 3, 4, 5, 6, 7, 8, 255]);
        assert_eq!(code.reveal(), "01234-5678Z");
        for typed in [
            "01234-5678Z",
            "012345678z",
            " o1234 - 5678z ",
            "OI234-5678Z",
            "0l2345678z",
        ] {
            assert_eq!(read_sign_in_code(typed).as_ref(), Some(&code), "{typed}");
        }
        for typed in [
            "",
            "01234",
            "01234-5678Z0",
            "01234-5678U",
            "01234-5678é",
            "01234_5678Z",
        ] {
            assert_eq!(read_sign_in_code(typed), None, "{typed}");
        }
    }

    #[test]
    fn no_key_is_spelt_like_a_session_and_no_session_like_a_key() {
        let session = session_secret([7; SECRET_BYTES]);
        assert_eq!(
            read_session_secret(session.reveal()).as_ref(),
            Some(&session)
        );
        assert_eq!(read(session.reveal()), None);
        let agent = key(&id([1; ID_BYTES]), [7; SECRET_BYTES]);
        let local = local_token([7; SECRET_BYTES]);
        for other in [agent.reveal(), local.reveal(), "rfs_", "", "rfs_0"] {
            assert_eq!(read_session_secret(other), None, "{other}");
        }
    }

    use super::*;

    fn sample() -> Secret {
        key(&id([1, 2, 3, 4, 5]), [7; SECRET_BYTES])
    }

    #[test]
    fn a_key_reads_as_itself() {
        let key = sample();
        assert_eq!(read(key.reveal()), Some(KeyForm::Key("04106105")));
        assert_eq!(key.reveal().len(), 3 + 8 + 1 + 52 + 8);
        let token = local_token([9; SECRET_BYTES]);
        assert_eq!(read(token.reveal()), Some(KeyForm::Local));
        assert_eq!(
            read_local_token(&format!("{}\n", token.reveal())),
            Some(token)
        );
    }

    #[test]
    fn spelling_is_base_32() {
        assert_eq!(spell(&[]), "");
        assert_eq!(spell(&[0xff]), "zw");
        assert_eq!(spell(&[0xff; 5]), "zzzzzzzz");
        assert_eq!(spell(&[0x08, 0x42, 0x10, 0x84, 0x21]), "11111111");
        assert_eq!(spell(&[0; 32]).len(), SECRET_CHARS);
    }

    #[test]
    fn every_typing_error_is_detected() {
        let key = sample();
        let text = key.reveal();
        for place in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[place] = if bytes[place] == b'a' { b'b' } else { b'a' };
            let slipped = String::from_utf8(bytes).expect("ASCII");
            assert_eq!(read(&slipped), None, "{place}");
            assert_eq!(read(text.split_at(place).0), None, "{place}");
        }
        for odd in ["", "rf_", "rf_local_", "é".repeat(40).as_str(), "aaaaaaaa"] {
            assert_eq!(read(odd), None, "{odd}");
        }
        // Spelt right by their checksum, and still no keys.
        for body in [
            "rf_short_x".to_owned(),
            format!("rf_04106105_{}", "u".repeat(52)),
            format!("rf_LOCAL000_{}", "0".repeat(52)),
            format!("rf_local_{}", "0".repeat(51)),
        ] {
            assert_eq!(read(&with_checksum(body.clone())), None, "{body}");
        }
    }

    #[test]
    fn a_secret_is_never_shown_by_accident() {
        let key = sample();
        assert_eq!(format!("{key:?}"), "Secret(***)");
    }

    #[test]
    fn key_names_are_plain_and_not_reserved() {
        for good in ["researcher", "a", "build-7", "Team.B_2", "9to5"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "a".repeat(NAME_CHARS_MAX + 1);
        for bad in [
            "",
            "owner",
            "Owner",
            "LOCAL",
            "stdio",
            "oauth:me",
            "-x",
            ".x",
            "a b",
            "é",
            "a\n",
            "a\u{200b}",
            &long,
        ] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
