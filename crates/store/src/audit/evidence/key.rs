//! The key of a home, which signs heads of its log: Ed25519, made at the first start, in
//! a file that only its owner can read, in the form that Go's `sumdb/note` gives
//! private keys.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::record::note::{NoteKey, NoteKeyKind, NoteSignature, SignedNote, cosigned};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustix::fs::OFlags;
use uuid::Uuid;

use crate::error::StoreError;
use crate::home::files::sync_folder;
use crate::limit;

/// What a private key begins with.
const PREFIX: &str = "PRIVATE+KEY+";

/// The key of a home.
pub(crate) struct HomeKey {
    pair: Ed25519KeyPair,
    public: NoteKey,
}

impl std::fmt::Debug for HomeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HomeKey({})", self.public)
    }
}

/// The file of the key.
fn path(home: &Path) -> PathBuf {
    home.join("audit.key")
}

/// Whether an Ed25519 signature is sound.
pub fn is_sound(public: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
    let key = UnparsedPublicKey::new(&ED25519, public);
    key.verify(message, signature).is_ok()
}

/// The public key of the log of a home, if it has one.
pub fn public_key(home: &Path) -> Result<Option<NoteKey>, StoreError> {
    Ok(HomeKey::find(home)?.map(|key| key.public().clone()))
}

impl HomeKey {
    /// The key of a home, if it has one.
    pub(crate) fn find(home: &Path) -> Result<Option<HomeKey>, StoreError> {
        let path = path(home);
        let fail = |error| StoreError::file("read", &path, error);
        let mut options = OpenOptions::new();
        let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let file = match options.read(true).custom_flags(no_link).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        // Asked of the open file, not of the name: the file under the name
        // could be exchanged.
        let others = file.metadata().map_err(fail)?.mode() & 0o077;
        if others != 0 {
            let why = "other users can read it; run `chmod 600` on it";
            return Err(fail(io::Error::other(why)));
        }
        let mut text = String::new();
        let mut file = file.take(limit::KEY_FILE_BYTES_MAX);
        file.read_to_string(&mut text).map_err(fail)?;
        let key = read(text.trim_end());
        let wrong = || fail(io::Error::other("it is not a private key of a log"));
        Ok(Some(key.ok_or_else(wrong)?))
    }

    /// Makes a key for a home that has none. If another process was faster, its key
    /// is taken.
    pub(crate) fn make(home: &Path) -> Result<HomeKey, StoreError> {
        let path = path(home);
        let fail = |error| StoreError::file("write", &path, error);
        let mut seed = [0; 32];
        let no_randomness = |_| fail(io::Error::other("there is no randomness"));
        SystemRandom::new().fill(&mut seed).map_err(no_randomness)?;
        let name = format!("ringfence/{}", Uuid::new_v4().simple());
        let key = HomeKey::new(&name, &seed);
        let key = key.ok_or_else(|| fail(io::Error::other("no key could be made")))?;
        let unfinished = home.join(format!(".audit.key.{}", Uuid::new_v4().simple()));
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600);
        let text = format!("{}\n", key.private_text(&seed));
        let write = |mut file: File| {
            file.write_all(text.as_bytes())
                // On the disk before it gets its name. A head signed with a key that is
                // lost could never be followed by another.
                .and_then(|()| file.sync_all())
        };
        let linked = made
            .open(&unfinished)
            .and_then(write)
            // A link, unlike a rename, replaces nothing.
            .and_then(|()| fs::hard_link(&unfinished, &path));
        let _ = fs::remove_file(&unfinished);
        match linked {
            Ok(()) => {
                sync_folder(home)?;
                Ok(key)
            }
            // Another process won. Its key is the one that signs, so ours is forgotten.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = HomeKey::find(home)?;
                found.ok_or_else(|| fail(io::Error::other("it vanished")))
            }
            Err(error) => Err(fail(error)),
        }
    }

    fn new(name: &str, seed: &[u8; 32]) -> Option<HomeKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        let public = pair.public_key().as_ref().try_into().ok()?;
        let public = NoteKey::new(name, NoteKeyKind::Log, public)?;
        Some(HomeKey { pair, public })
    }

    /// What others verify its signatures with.
    pub(crate) fn public(&self) -> &NoteKey {
        &self.public
    }

    /// The key this home witnesses other logs with: the same, under the kind that binds
    /// a time.
    pub(crate) fn witness(&self) -> Option<NoteKey> {
        NoteKey::new(
            self.public.name(),
            NoteKeyKind::Witness,
            *self.public.public(),
        )
    }

    /// Signs a text.
    pub(crate) fn sign(&self, text: String) -> SignedNote {
        let signature = self.pair.sign(text.as_bytes()).as_ref().to_vec();
        SignedNote::new(text, NoteSignature::by(&self.public, signature))
    }

    /// Signs that a text was seen at a time, in seconds since 1970.
    pub(crate) fn cosign(&self, seconds: u64, text: &str) -> Option<NoteSignature> {
        let message = cosigned(seconds, text);
        let mut bytes = seconds.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.pair.sign(message.as_bytes()).as_ref());
        Some(NoteSignature::by(&self.witness()?, bytes))
    }

    fn private_text(&self, seed: &[u8; 32]) -> String {
        let mut key = vec![1];
        key.extend_from_slice(seed);
        let id = u32::from_be_bytes(self.public.id());
        let name = self.public.name();
        format!("{PREFIX}{name}+{id:08x}+{}", STANDARD.encode(key))
    }
}

fn read(text: &str) -> Option<HomeKey> {
    let mut parts = text.strip_prefix(PREFIX)?.splitn(3, '+');
    let (name, id, key) = (parts.next()?, parts.next()?, parts.next()?);
    let key = STANDARD.decode(key).ok()?;
    let (kind, seed) = key.split_first()?;
    let key = HomeKey::new(name, seed.try_into().ok()?)?;
    // The id is part of the text. A key whose id does not fit was put together by hand.
    let is_own = format!("{:08x}", u32::from_be_bytes(key.public.id())) == id;
    (*kind == 1 && is_own).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Go's `sumdb/note`: private key, public key and signed note.
    const PRIVATE: &str =
        "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
    const PUBLIC: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const TEXT: &str = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n";
    const SIGNED: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    #[test]
    fn a_known_key_signs_a_known_note() {
        let key = read(PRIVATE).expect("a key");
        assert_eq!(key.public().to_string(), PUBLIC);
        let note = key.sign(TEXT.to_owned());
        assert_eq!(note.to_string(), format!("{TEXT}\n{SIGNED}"));
        assert!(key.public().has_signed(&note, &is_sound));
        let forged = note.to_string().replace("the answer", "an answer!");
        let forged: SignedNote = forged.parse().expect("a note");
        assert!(!key.public().has_signed(&forged, &is_sound));
    }

    #[test]
    fn a_witness_signs_the_time_too() {
        let key = read(PRIVATE).expect("a key");
        let witness = key.witness().expect("a name");
        let mut note = key.sign(TEXT.to_owned());
        note.add(key.cosign(1_700_000_000, TEXT).expect("a signature"));
        assert!(witness.has_signed(&note, &is_sound));
        // Attack: another time under the same signature.
        let mut signature = key.cosign(1_700_000_000, TEXT).expect("a signature");
        signature.bytes[7] ^= 1;
        let later = SignedNote::new(TEXT.to_owned(), signature);
        assert!(!witness.has_signed(&later, &is_sound));
    }

    #[test]
    fn texts_that_are_no_key_are_not_read() {
        for text in [
            "",
            PUBLIC,
            &PRIVATE.replace("c74f20a3", "c74f20a4"),
            &PRIVATE.replace("Peter", "Paul"),
            &PRIVATE.replace("+AYEK", "+AoEK"),
            &PRIVATE.replace("HKDFz", ""),
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
