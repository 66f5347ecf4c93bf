//! Importing servers from a client's settings: secrets move to the file of secrets, the
//! servers go into the settings, and all of them are held. The client's own file is not
//! touched; `ringfence wrap` does that besides.

use std::collections::BTreeSet;

use host::secrets::Secrets;

use crate::client_import::{ClientEntry, ImportContext, ImportPlan, ImportedServer};
use crate::engine::{Engine, SECRETS_FILE};
use crate::error::EngineError;
use crate::life::revision;
use crate::policy_admin::ApplyFault;
use crate::secret_admin::SecretFault;
use crate::server_admin::{ServerAdmin, ServerAdminError};
use crate::server_settings;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportFault {
    /// A secret could not be moved.
    #[error(transparent)]
    Secret(#[from] SecretFault),
    /// The settings could not be changed.
    #[error(transparent)]
    Apply(#[from] ApplyFault),
    /// It could not be written down.
    #[error(transparent)]
    Server(#[from] ServerAdminError),
    /// The engine could not.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Engine {
    /// What importing these servers would do, with the settings and secrets of now.
    ///
    /// # Errors
    /// The file of secrets cannot be used.
    pub fn plan_import(&self, entries: &[ClientEntry]) -> Result<ImportPlan, SecretFault> {
        let secrets = Secrets::open(self.home().join(SECRETS_FILE)).read()?;
        let now = self.registry().current();
        let context = ImportContext {
            config: &now.config,
            secrets: &secrets,
            environment: self.own_environment(),
        };
        Ok(ImportPlan::new(entries, &context))
    }
}

impl ServerAdmin<'_> {
    /// Imports servers of a plan, by the names their client has for them. Everything before
    /// the settings change only adds: a secret that nothing uses yet, a notice.
    ///
    /// # Errors
    /// Something could not be written; no server is then in the settings.
    pub fn import(
        &self,
        plan: &ImportPlan,
        chosen: &BTreeSet<String>,
    ) -> Result<Vec<String>, ImportFault> {
        let engine = self.engine();
        let is_chosen = |one: &&ImportedServer| chosen.contains(&one.from) && !one.is_known;
        let wanted: Vec<_> = plan.imported.iter().filter(is_chosen).collect();
        let now = engine.registry().current();
        let seen = &now.settings.text;
        let written: Vec<_> = wanted.iter().map(|one| one.written.clone()).collect();
        let changed = server_settings::with(seen, &written)?;
        for (_, name) in wanted.iter().flat_map(|one| &one.moved) {
            let new = plan.secrets.iter().find(|(known, _)| known == name);
            if let Some((name, value)) = new {
                engine.set_secret(name, Some(value), self.actor())?;
            }
        }
        for one in &wanted {
            self.note_added(&one.written.name, &one.launch.shown())?;
        }
        let names: Vec<_> = written.into_iter().map(|one| one.name).collect();
        let reason = format!("imported the servers `{}`", names.join("`, `"));
        engine.apply_settings(&changed, &revision(seen), (self.actor(), &reason))?;
        Ok(names)
    }
}
