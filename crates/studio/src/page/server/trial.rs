//! Trying a server out before it is added: it is started as it would be, listed, and ended.
//! Nothing of it is kept.

use engine::server_trial::ServerTrial;
use model::text;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ReviewView, ServerBody, check_shown, failed, reviewed_view};
use crate::error::{ApiError, ApiResult};
use crate::request::Asked;
use crate::studio::Studio;

/// What a trial found, and what would be pinned.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TrialView {
    review: ReviewView,
    protocol: String,
    walls: Vec<WallView>,
    log: Vec<String>,
}

/// One layer of the jail that it ran in.
#[derive(Debug, Serialize, JsonSchema)]
struct WallView {
    name: String,
    missing: Option<String>,
}

pub(super) async fn trial(studio: Studio, asked: Asked, given: ServerBody) -> ApiResult<TrialView> {
    let written = given.written()?;
    check_shown(&given, &written)?;
    let place = studio.inner.trials.try_acquire();
    let _place = place.map_err(|_| ApiError::unavailable("other servers are being tried out"))?;
    let admin = studio.engine().servers().by(asked.actor()?);
    let tried = admin.try_out(&written).await;
    let tried = tried.map_err(|fault| failed(&studio, &fault))?;
    Ok(view(&written.name, tried))
}

fn view(name: &str, tried: ServerTrial) -> TrialView {
    let wall = |(name, missing): (String, Option<String>)| WallView {
        name: text::one_line(&name),
        missing: missing.map(|why| text::one_line(&why)),
    };
    TrialView {
        review: reviewed_view(name, &tried.review),
        protocol: text::one_line(&tried.protocol),
        walls: tried.walls.into_iter().map(wall).collect(),
        log: tried.log.iter().map(|line| text::one_line(line)).collect(),
    }
}
