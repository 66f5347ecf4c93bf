//! A server's form as a person gets it: it says who asks, and what a terminal or a page would
//! obey is out of it. One that asks for a secret is not shown at all.

use model::text::{elided, is_hidden};
use serde_json::Value;

/// Characters of a server's question, and of one description.
const QUESTION_CHARS_MAX: usize = 2_000;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 200;

/// Fields a server does not get from a person through us, by a word of their names or
/// titles, or by two words that follow each other.
const SECRET_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "credential",
    "credentials",
    "pin",
    "otp",
    "cvv",
];

/// The same in sentences, where a `token` may be one of a text and a `pin` one of a map.
const SECRET_WORDS_OF_SENTENCES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "credentials",
    "cvv",
    "otp",
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authtoken",
    "backupcode",
    "bearertoken",
    "clientsecret",
    "encryptionkey",
    "pincode",
    "privatekey",
    "recoverycode",
    "recoveryphrase",
    "refreshtoken",
    "secretkey",
    "securitycode",
    "seedphrase",
    "sessiontoken",
    "signingkey",
    "verificationcode",
];

/// The form as it is put to the person; nothing if it is declined.
pub(super) fn shown(server: &str, mut form: Value) -> Option<Value> {
    // Attack: the person would type the secret into a client they trust, and the
    // server would get it.
    if asks_for_secret(&form) {
        return None;
    }
    let words = form.get("message").and_then(Value::as_str);
    // Attack: control characters could redraw the prompt so that the name is not
    // seen.
    let words = elided(words.unwrap_or_default(), QUESTION_CHARS_MAX);
    let titled = format!("The server `{server}` asks: {words}");
    let members = form.as_object_mut()?;
    members.insert("message".to_owned(), titled.into());
    members.remove("_meta");
    let schema = members.get_mut("requestedSchema");
    schema
        .is_none_or(|schema| clean(schema, None))
        .then_some(form)
}

/// Makes the texts visible that only a person reads. Whether the rest is harmless: names and
/// choices are compared by the server, so that they cannot be changed.
fn clean(value: &mut Value, chars_max: Option<usize>) -> bool {
    match (value, chars_max) {
        (Value::String(text), Some(chars_max)) => {
            *text = elided(text, chars_max);
            true
        }
        (Value::String(text), None) => !text.chars().any(is_obeyed),
        (Value::Array(items), _) => items.iter_mut().all(|item| clean(item, chars_max)),
        (Value::Object(members), _) => {
            let is_odd = |text: &str| text.chars().any(is_obeyed);
            // What is filled in beforehand is a suggestion, and can be left out.
            if members
                .get("default")
                .and_then(Value::as_str)
                .is_some_and(is_odd)
            {
                members.remove("default");
            }
            let mut members = members.iter_mut();
            members.all(|(key, member)| {
                let chars_max = match key.as_str() {
                    "title" | "enumNames" => Some(TITLE_CHARS_MAX),
                    "description" => Some(QUESTION_CHARS_MAX),
                    _ => None,
                };
                !is_odd(key) && clean(member, chars_max)
            })
        }
        (Value::Null | Value::Bool(_) | Value::Number(_), _) => true,
    }
}

/// Whether a character is no part of what is read. Two that belong to emoji are.
fn is_obeyed(character: char) -> bool {
    is_hidden(character) && !matches!(character, '\u{200d}' | '\u{fe0f}')
}

/// Whether a form wants a secret: by the name and the title of a field, and by what is said
/// of a field that takes any text. It knows words, and English ones alone.
fn asks_for_secret(form: &Value) -> bool {
    let schema = form.get("requestedSchema");
    let text = |of: Option<&Value>, member: &str| {
        let text = of.and_then(|of| of.get(member)).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let properties = schema.and_then(|schema| schema.get("properties"));
    let properties = properties.and_then(Value::as_object).into_iter().flatten();
    let mut takes_text = false;
    for (name, property) in properties {
        let is_free = is_free(property);
        takes_text |= is_free;
        let words = [name.clone(), text(Some(property), "title")];
        let is_named = words.iter().any(|words| has_word(words, SECRET_WORDS));
        let about = text(Some(property), "description");
        let is_said = is_free && has_word(&about, SECRET_WORDS_OF_SENTENCES);
        if is_named || is_said || text(Some(property), "format") == "password" {
            return true;
        }
    }
    let about = [
        text(Some(form), "message"),
        text(schema, "title"),
        text(schema, "description"),
    ];
    let mut about = about.iter();
    takes_text && about.any(|words| has_word(words, SECRET_WORDS_OF_SENTENCES))
}

/// Whether a person types what they like into a field; a yes or a choice is no secret.
fn is_free(property: &Value) -> bool {
    let is_choice = ["enum", "oneOf", "anyOf", "const"]
        .iter()
        .any(|word| property.get(word).is_some());
    let kind = property.get("type").and_then(Value::as_str);
    !is_choice && !matches!(kind, Some("boolean" | "array"))
}

/// Whether one of the words of a text, or two that follow each other, are in a list.
fn has_word(text: &str, list: &[&str]) -> bool {
    let words = split_words(text);
    let pairs = words.windows(2).map(<[String]>::concat);
    let mut all = words.iter().cloned().chain(pairs);
    all.any(|word| list.contains(&word.as_str()))
}

/// The words of a name or a sentence in lower case: `accessToken` has two, as `access-token`
/// has.
fn split_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in text.chars() {
        let begins = !character.is_alphanumeric() || (was_lower && character.is_uppercase());
        was_lower = character.is_lowercase() || character.is_numeric();
        if begins {
            words.push(String::new());
        }
        if let (true, Some(word)) = (character.is_alphanumeric(), words.last_mut()) {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(message: &str, properties: &Value) -> Value {
        json!({
            "mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": properties},
        })
    }

    #[test]
    fn a_form_for_a_secret_is_not_shown() {
        let asks = |properties: &Value| asks_for_secret(&form("", properties));
        for secret in [
            json!({"password": {"type": "string"}}),
            json!({"x": {"type": "string", "title": "Your API key"}}),
            json!({"github_token": {"type": "string"}}),
            json!({"accessToken": {"type": "string"}}),
            json!({"client-secret": {"type": "string"}}),
            json!({"apiKey": {"type": "string"}}),
            json!({"x": {"type": "string", "format": "password"}}),
            json!({"x": {"type": "string", "description": "A personal access token of GitHub"}}),
            json!({"pin": {"type": "integer"}}),
        ] {
            assert!(asks(&secret), "{secret}");
        }
        for plain in [
            json!({"shipping": {"type": "string"}}),
            json!({"opinion": {"type": "string", "title": "What do you think of spinners?"}}),
            json!({"x": {"type": "string", "description": "The token that the parser stops at"}}),
            json!({"x": {"type": "boolean", "description": "Forget the password?"}}),
        ] {
            assert!(!asks(&plain), "{plain}");
        }
    }

    /// Attack: the field is called `value`, and the question asks for the token.
    #[test]
    fn a_question_for_a_secret_is_not_shown_whatever_its_field_is_called() {
        let field = json!({"value": {"type": "string"}});
        for words in [
            "Please type your GitHub personal access token",
            "Your API-key?",
            "Paste the private key here.",
            "Which password do you use?",
        ] {
            assert!(asks_for_secret(&form(words, &field)), "{words}");
            // A yes gives nothing away.
            let yes = json!({"value": {"type": "boolean"}});
            assert!(!asks_for_secret(&form(words, &yes)), "{words}");
            let choice = json!({"value": {"type": "string", "enum": ["old", "new"]}});
            assert!(!asks_for_secret(&form(words, &choice)), "{words}");
        }
        for words in [
            "Which colour?",
            "Where shall the pin be?",
            "How many tokens at most?",
        ] {
            assert!(!asks_for_secret(&form(words, &field)), "{words}");
        }
    }

    #[test]
    fn every_text_of_a_form_is_visible() {
        let odd = "a\u{1b}[2J\u{202e}b";
        let seen = "a\\u{1b}[2J\\u{202e}b";
        let properties = json!({
            "colour": {"type": "string", "title": odd, "description": odd, "default": odd,
                "enum": ["r", "g"], "enumNames": [odd, "green"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": odd}]},
            // A field may be called as a member of a schema is.
            "title": {"type": "array", "items": {"anyOf": [{"const": "x", "title": odd}]}},
        });
        let mut raw = form(odd, &properties);
        raw["requestedSchema"]["description"] = odd.into();
        let shown = shown("acme", raw).expect("it is shown");
        let expected = json!({
            "colour": {"type": "string", "title": seen, "description": seen,
                "enum": ["r", "g"], "enumNames": [seen, "green"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": seen}]},
            "title": {"type": "array", "items": {"anyOf": [{"const": "x", "title": seen}]}},
        });
        assert_eq!(shown["requestedSchema"]["properties"], expected);
        assert_eq!(shown["requestedSchema"]["description"], seen);
        let message = format!("The server `acme` asks: {seen}");
        assert_eq!(shown["message"], message);
        let text = shown.to_string();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert!(!text.contains("\\u001b"), "{text}");
    }

    /// What the server compares cannot be changed, so such a form is declined.
    #[test]
    fn a_form_with_controls_in_names_or_choices_is_declined() {
        for properties in [
            json!({"a\u{1b}[1m": {"type": "string"}}),
            json!({"a\u{202e}": {"type": "string"}}),
            json!({"a": {"type": "string", "enum": ["x\u{1b}"]}}),
            json!({"a": {"type": "string", "oneOf": [{"const": "x\n", "title": "x"}]}}),
            json!({"title": {"type": "string", "enum": ["x\u{1b}"]}}),
            json!({"a": {"type": "array", "items": {"enum": ["\u{2066}"]}}}),
        ] {
            assert!(
                shown("acme", form("Which?", &properties)).is_none(),
                "{properties}"
            );
        }
        let plain = json!({"größe": {"type": "string", "enum": ["日本", "❤\u{fe0f}"]}});
        assert!(shown("acme", form("Which?", &plain)).is_some());
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "x".repeat(10_000);
        let properties = json!({"a": {"type": "string", "title": long, "description": long}});
        let shown = shown("acme", form(&long, &properties)).expect("it is shown");
        assert!(shown.to_string().chars().count() < 5_000);
    }
}
