//! People at the Studio: who they are and what they may do there. A person's session and an
//! agent's key are different things, and neither opens the other's door (Invariant 18).

use serde::Serialize;

use crate::caller::Caller;

crate::words! {
    /// The role of a person. Later may do more.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum PersonRole {
        /// Sees everything but secrets, changes nothing.
        Viewer = "viewer",
        /// Also answers questions.
        Approver = "approver",
        /// Does everything.
        Owner = "owner",
    }
}

impl PersonRole {
    /// The role a word means. Invariant 8: an unknown word is none.
    #[must_use]
    pub fn from_word(word: &str) -> Option<PersonRole> {
        use crate::word::Word as _;
        let mut all = PersonRole::ALL.iter().copied();
        all.find(|role| role.word() == word)
    }
}

/// A person who signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name the audit has: `owner`, or an issuer's subject.
    pub name: String,
    /// Their role.
    pub role: PersonRole,
}

impl Person {
    /// The owner of the home folder, who can read the one-time code.
    #[must_use]
    pub fn owner() -> Person {
        Person {
            name: Caller::owner().name,
            role: PersonRole::Owner,
        }
    }

    /// The person as a caller who answers questions.
    #[must_use]
    pub fn answerer(&self) -> Caller {
        // Name and role: an issuer may vouch for a person named like the owner.
        match Caller::owner() {
            owner if owner.name == self.name && self.role == PersonRole::Owner => owner,
            _ => Caller::named(&self.name),
        }
    }
}

/// The author of a change outside of calls: the person and the door. The audit names
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// The person.
    pub by: &'a str,
    /// `cli`, `studio`.
    pub through: &'a str,
}

impl Actor<'static> {
    /// The owner at a terminal.
    pub const OWNER_AT_TERMINAL: Actor<'static> = Actor {
        by: "owner",
        through: "cli",
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::CallerKind;

    #[test]
    fn a_later_role_may_do_more() {
        assert!(PersonRole::Viewer < PersonRole::Approver);
        assert!(PersonRole::Approver < PersonRole::Owner);
        assert_eq!(PersonRole::from_word("owner"), Some(PersonRole::Owner));
        for odd in ["", "Owner", "admin", "owner "] {
            assert_eq!(PersonRole::from_word(odd), None, "{odd}");
        }
    }

    #[test]
    fn only_the_owner_answers_as_the_owner() {
        assert_eq!(Person::owner().answerer().kind, CallerKind::Owner);
        for (name, role) in [
            ("oauth:owner", PersonRole::Owner),
            ("owner", PersonRole::Viewer),
        ] {
            let person = Person {
                name: name.to_owned(),
                role,
            };
            assert_eq!(person.answerer().kind, CallerKind::Named);
        }
    }
}
