//! What the operator set about the Studio: how long people stay signed in, whether `serve`
//! prints a code, and who signs in with an issuer's account.

use serde::Deserialize;

use super::Faults;
use crate::document::placeholder;
use crate::govern::person::PersonRole;
use crate::limits;
use crate::text::elided;

crate::words! {
    /// Whether `serve` prints a one-time code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CodePrinting {
        /// Only to a terminal: what is no terminal is kept, and others read it.
        Terminal = "terminal",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

/// What the operator set about the Studio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudioConfig {
    /// Minutes a session may be unused.
    pub idle_minutes: u64,
    /// Hours a session lasts, however much it is used.
    pub session_hours: u64,
    /// Whether `serve` prints a one-time code.
    pub print_code: CodePrinting,
    /// Who signs in with an issuer's account. Absent: none.
    pub oauth: Option<StudioOauth>,
}

/// Whose accounts open the Studio, and what each may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudioOauth {
    /// The issuer, exactly as its tokens say.
    pub issuer: String,
    /// The id of the client that was registered there.
    pub client_id: String,
    /// Its secret as a template, such as `${NAME}`.
    pub client_secret: Option<String>,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// The claim that names the person in the audit.
    pub name_claim: String,
    /// The claim that says what the person may do. Dots lead into objects.
    pub role_claim: String,
    /// Values of that claim for each role.
    pub viewer: Vec<String>,
    /// Values for those who answer questions.
    pub approver: Vec<String>,
    /// Values for those who do everything.
    pub owner: Vec<String>,
}

impl StudioConfig {
    pub(super) fn standard() -> StudioConfig {
        StudioConfig {
            idle_minutes: limits::PERSON_IDLE_MINUTES_DEFAULT,
            session_hours: limits::PERSON_SESSION_HOURS_DEFAULT,
            print_code: CodePrinting::Terminal,
            oauth: None,
        }
    }
}

impl StudioOauth {
    /// The highest role that some values of the role claim give. Invariant 8: a value that
    /// no list names gives none.
    #[must_use]
    pub fn role<'a>(&self, values: impl Iterator<Item = &'a str>) -> Option<PersonRole> {
        let role_of = |value: &str| {
            let has = |list: &[String]| list.iter().any(|known| known == value);
            let roles = [
                (PersonRole::Owner, has(&self.owner)),
                (PersonRole::Approver, has(&self.approver)),
                (PersonRole::Viewer, has(&self.viewer)),
            ];
            roles.into_iter().find(|(_, is_it)| *is_it)
        };
        values.filter_map(role_of).map(|(role, _)| role).max()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StudioFile {
    idle_minutes: Option<toml::Spanned<u64>>,
    session_hours: Option<toml::Spanned<u64>>,
    print_code: Option<toml::Spanned<String>>,
    oauth: Option<toml::Spanned<StudioOauthFile>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StudioOauthFile {
    issuer: Option<String>,
    client_id: toml::Spanned<String>,
    client_secret: Option<toml::Spanned<String>>,
    scopes: Option<Vec<toml::Spanned<String>>>,
    name_claim: Option<String>,
    role_claim: Option<String>,
    #[serde(default)]
    viewer: Vec<toml::Spanned<String>>,
    #[serde(default)]
    approver: Vec<toml::Spanned<String>>,
    #[serde(default)]
    owner: Vec<toml::Spanned<String>>,
}

impl Faults<'_> {
    /// `issuer` is the one whose tokens agents come with, if there is one.
    pub(super) fn studio(&mut self, file: StudioFile, issuer: Option<&str>) -> StudioConfig {
        let mut studio = StudioConfig::standard();
        let minutes = 1..=limits::PERSON_IDLE_MINUTES_MAX;
        let given = self.read_number("idle_minutes", file.idle_minutes, minutes);
        studio.idle_minutes = given.unwrap_or(studio.idle_minutes);
        let hours = 1..=limits::PERSON_SESSION_HOURS_MAX;
        let given = self.read_number("session_hours", file.session_hours, hours);
        studio.session_hours = given.unwrap_or(studio.session_hours);
        self.set_word("print_code", file.print_code, &mut studio.print_code);
        studio.oauth = file.oauth.map(|oauth| self.studio_oauth(oauth, issuer));
        studio
    }

    fn studio_oauth(
        &mut self,
        file: toml::Spanned<StudioOauthFile>,
        issuer: Option<&str>,
    ) -> StudioOauth {
        let at = file.span().start;
        let file = file.into_inner();
        let issuer = file.issuer.or_else(|| issuer.map(str::to_owned));
        if issuer.is_none() {
            let message = "`studio.oauth` names no `issuer`, and there is no `[oauth]`".to_owned();
            self.say_at(at, message, None);
        }
        if file.viewer.len() + file.approver.len() + file.owner.len() == 0 {
            let message = "`studio.oauth` gives no person a role".to_owned();
            let fix = "name values of the role claim in `viewer`, `approver` or `owner`".to_owned();
            self.say_at(at, message, Some(fix));
        }
        if let Some(secret) = &file.client_secret
            && placeholder::names(secret.get_ref()).next().is_none()
        {
            let message = "`client_secret` stands in plain text".to_owned();
            let fix = "put it into secrets.env and write `${NAME}`".to_owned();
            self.say(secret, message, Some(fix));
        }
        let scopes = file.scopes.unwrap_or_default();
        for text in std::iter::once(&file.client_id).chain(&scopes) {
            let word = text.get_ref();
            let is_word = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            let fits = word.len() <= limits::SERVER_OAUTH_WORD_BYTES_MAX;
            if word.is_empty() || !fits || !word.bytes().all(is_word) {
                let message = format!("`{}` cannot be a client id or a scope", elided(word, 40));
                self.say(text, message, None);
            }
        }
        let mut values = |list: Vec<toml::Spanned<String>>| -> Vec<String> {
            for text in &list {
                if text.get_ref().trim().is_empty() {
                    self.say(text, "an empty value gives no role".to_owned(), None);
                }
            }
            list.into_iter().map(toml::Spanned::into_inner).collect()
        };
        let [viewer, approver, owner] = [file.viewer, file.approver, file.owner].map(&mut values);
        let mut scopes: Vec<_> = scopes.into_iter().map(toml::Spanned::into_inner).collect();
        // Without it the issuer says nothing about the person.
        if !scopes.iter().any(|scope| scope == "openid") {
            scopes.insert(0, "openid".to_owned());
        }
        StudioOauth {
            issuer: issuer.unwrap_or_default(),
            client_id: file.client_id.into_inner(),
            client_secret: file.client_secret.map(toml::Spanned::into_inner),
            scopes,
            name_claim: file.name_claim.unwrap_or_else(|| "sub".to_owned()),
            role_claim: file.role_claim.unwrap_or_else(|| "roles".to_owned()),
            viewer,
            approver,
            owner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<StudioConfig, Vec<String>> {
        let config = Config::parse(text);
        let config = config.map(|config| config.studio);
        config.map_err(|faults| faults.into_iter().map(|fault| fault.message).collect())
    }

    #[test]
    fn a_value_that_no_list_names_gives_no_role() {
        let text = "[studio.oauth]\nissuer = \"https://a.example\"\nclient_id = \"c\"\nviewer = [\"v\", \"both\"]\nowner = [\"o\", \"both\"]\n";
        let oauth = parse(text).unwrap().oauth.unwrap();
        let role = |values: &[&str]| oauth.role(values.iter().copied());
        assert_eq!(role(&["v"]), Some(PersonRole::Viewer));
        assert_eq!(role(&["x", "o", "v"]), Some(PersonRole::Owner));
        assert_eq!(role(&["both"]), Some(PersonRole::Owner));
        for odd in [&[][..], &["V"], &["owner"], &["o "], &[""]] {
            assert_eq!(role(odd), None, "{odd:?}");
        }
        assert_eq!(oauth.scopes, ["openid"]);
    }

    #[test]
    fn a_sign_in_needs_an_issuer_roles_and_a_hidden_secret() {
        let faults = parse("[studio.oauth]\nclient_id = \"c d\"\nclient_secret = \"plain\"\n");
        let faults = faults.unwrap_err();
        assert_eq!(faults.len(), 4, "{faults:?}");
        let shared = "[oauth]\nissuer = \"https://a.example\"\n[studio.oauth]\nclient_id = \"c\"\nclient_secret = \"${S}\"\nviewer = [\"v\"]\n";
        let oauth = parse(shared).unwrap().oauth.unwrap();
        assert_eq!(oauth.issuer, "https://a.example");
        for odd in [
            "idle_minutes = 0",
            "session_hours = 169",
            "print_code = \"yes\"",
        ] {
            assert!(parse(&format!("[studio]\n{odd}\n")).is_err(), "{odd}");
        }
        assert_eq!(parse("").unwrap(), StudioConfig::standard());
    }
}
