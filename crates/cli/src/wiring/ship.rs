//! Ships the audit of a server to a database, if the settings name one, while the server
//! runs. Each reason for a failure is reported once; records wait in the log meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use engine::{Alarm, Engine};
use model::Environment;
use model::config::ShipConfig;
use store::{ShipDatabase, Shipper};

/// How long records wait for more of them.
const EVERY: Duration = Duration::from_millis(store::limit::SHIP_EVERY_MS_MAX);
/// How long a database that failed is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// The database that records are shipped to.
pub(crate) fn database(
    home: &Path,
    ship: &ShipConfig,
    environment: &Environment,
) -> anyhow::Result<Arc<ShipDatabase>> {
    let password =
        match &ship.password {
            None => None,
            // The store may need none; it says so itself if it does.
            Some(name) if ship.is_of_store => environment.get(name),
            Some(name) => Some(environment.get(name).with_context(|| {
                format!("`audit.ship.password` names `{name}`, which is not set")
            })?),
        };
    let ca_file = ship.ca_file.as_ref().map(|file| home.join(file));
    Ok(Arc::new(ShipDatabase::new(&ship.url, password, ca_file)?))
}

/// Ships while a server runs.
pub(crate) async fn run(engine: Arc<Engine>, alarm: Alarm) {
    let mut current: Option<(ShipConfig, Shipper)> = None;
    let mut told: Option<String> = None;
    let mut is_off = false;
    loop {
        let wanted = engine.registry().current().config.audit.ship.clone();
        if current.as_ref().map(|(config, _)| config) != wanted.as_ref() {
            // Other settings mean another database. The old connection must not
            // get records any more.
            current = None;
        }
        let stepped = match (&wanted, &mut current) {
            (None, _) => {
                if !is_off {
                    is_off = engine.store().audit().end_shipping().is_ok();
                }
                Ok(false)
            }
            (Some(_), Some((_, shipper))) => shipper.step().await.map_err(anyhow::Error::new),
            (Some(wanted), none) => begin(&engine, wanted).map(|shipper| {
                is_off = false;
                *none = Some((wanted.clone(), shipper));
                true
            }),
        };
        let pause = match &stepped {
            Ok(true) => Duration::ZERO,
            Ok(false) => EVERY,
            Err(_) => AGAIN,
        };
        let fault = stepped.err().map(|error| format!("{error:#}"));
        if let Some(fault) = fault.as_ref().filter(|fault| told.as_ref() != Some(fault)) {
            alarm.raise(&format!("the audit was not shipped: {fault}"));
        }
        told = fault;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = engine.store().audit().shipping_wanted() => {}
        }
    }
}

fn begin(engine: &Engine, wanted: &ShipConfig) -> anyhow::Result<Shipper> {
    let environment = engine.environment()?;
    let database = database(engine.home(), wanted, &environment)?;
    Ok(Shipper::new(engine.store(), database)?)
}
