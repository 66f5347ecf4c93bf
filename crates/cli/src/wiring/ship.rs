//! Ships the audit of a server to a database, if the settings name one, while the server
//! runs. Each reason for a failure is reported once; records wait in the log meanwhile.

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
    ship: &ShipConfig,
    environment: &Environment,
) -> anyhow::Result<Arc<ShipDatabase>> {
    let password =
        match &ship.password {
            None => None,
            Some(name) => Some(environment.get(name).with_context(|| {
                format!("`audit.ship.password` names `{name}`, which is not set")
            })?),
        };
    Ok(Arc::new(ShipDatabase::new(&ship.url, password)?))
}

/// Ships while a server runs.
pub(crate) async fn run(engine: Arc<Engine>, alarm: Alarm) {
    let mut current: Option<(ShipConfig, Shipper)> = None;
    let mut told: Option<String> = None;
    let mut is_off = false;
    loop {
        let wanted = engine.registry().current().config.audit.ship.clone();
        if current.as_ref().map(|(config, _)| config) != wanted.as_ref() {
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
        tokio::time::sleep(pause).await;
    }
}

fn begin(engine: &Engine, wanted: &ShipConfig) -> anyhow::Result<Shipper> {
    let environment = engine.environment()?;
    let database = database(wanted, &environment)?;
    Ok(Shipper::new(engine.store(), database)?)
}
