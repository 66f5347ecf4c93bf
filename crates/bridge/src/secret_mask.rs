//! Hides a server's own secrets in what it says: those of its settings, and the tokens of
//! a sign-in, which change while it runs. What cannot be masked is not passed on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use model::record::mask::Masker;
use model::sync::lock;
use serde_json::Value;

use crate::fault::ServerFault;
use crate::limit;
use crate::oauth::{OAuthFault, TokenSource, TokenStamp};

#[derive(Clone, Debug)]
pub(crate) struct SecretMask {
    configured: Arc<Masker>,
    tokens: Option<TokenSource>,
    known: Arc<Mutex<KnownTokens>>,
}

/// The tokens there were: a server may say one that was renewed since.
#[derive(Default)]
struct KnownTokens {
    /// The file they were read from last. While it is the same, it is not read again: a
    /// server may send a thousand messages in one call.
    stamp: Option<TokenStamp>,
    texts: VecDeque<String>,
    masker: Option<Arc<Masker>>,
}

impl std::fmt::Debug for KnownTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KnownTokens(***)")
    }
}

/// What masks everything that is known to be secret at one moment.
#[derive(Clone, Debug)]
pub(crate) struct MaskNow {
    configured: Arc<Masker>,
    tokens: Option<Arc<Masker>>,
}

impl MaskNow {
    pub(crate) fn value(&self, value: Value) -> Value {
        let masked = self.configured.value(value).into_inner();
        match &self.tokens {
            None => masked,
            Some(tokens) => tokens.value(masked).into_inner(),
        }
    }

    pub(crate) fn text(&self, words: &str) -> String {
        let masked = self.configured.text(words).into_inner();
        match &self.tokens {
            None => masked,
            Some(tokens) => tokens.text(&masked).into_inner(),
        }
    }
}

impl SecretMask {
    /// Hides what `configured` does, and the tokens of a sign-in if there is one.
    pub(crate) fn new(configured: Arc<Masker>, tokens: Option<TokenSource>) -> SecretMask {
        SecretMask {
            configured,
            tokens,
            known: Arc::default(),
        }
    }

    /// What masks with the tokens of this moment. Also asked before a request is sent: it
    /// may renew the token that the server then says.
    pub(crate) fn now(&self) -> Result<MaskNow, ServerFault> {
        Ok(MaskNow {
            configured: Arc::clone(&self.configured),
            tokens: self.tokens()?,
        })
    }

    /// A fault without secrets in the words of the server.
    pub(crate) fn fault(&self, fault: ServerFault) -> ServerFault {
        let now = self.now();
        fault.map_words(|words| match &now {
            Ok(mask) => mask.text(&words),
            Err(_) => "withheld, for its tokens cannot be masked".to_owned(),
        })
    }

    fn tokens(&self) -> Result<Option<Arc<Masker>>, ServerFault> {
        let Some(source) = &self.tokens else {
            return Ok(None);
        };
        let broken =
            |fault: OAuthFault| ServerFault::Start(format!("its tokens cannot be masked: {fault}"));
        let stamp = source.stamp().map_err(broken)?;
        let mut known = lock(&self.known);
        if known.masker.is_none() || known.stamp != Some(stamp) {
            for text in source.secrets().map_err(broken)? {
                if !known.texts.contains(&text) {
                    // In front, so that the oldest fall out at the bound.
                    known.texts.push_front(text);
                }
            }
            known.texts.truncate(limit::SERVER_TOKENS_MASKED_MAX);
            let masker = Masker::new(known.texts.iter().map(String::as_str));
            let masker = masker.map_err(|fault| {
                ServerFault::Start(format!("its tokens cannot be masked: {fault}"))
            })?;
            known.masker = Some(Arc::new(masker));
            // Taken before the file was read: a change in between is read next time.
            known.stamp = Some(stamp);
        }
        Ok(known.masker.clone())
    }
}
