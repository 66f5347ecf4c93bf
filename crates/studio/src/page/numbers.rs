//! Counts and percentiles over time, from the audit: the newest calls up to a bound, read
//! page by page.

use std::collections::BTreeMap;

use engine::approve::Listing;
use engine::{AuditEntry, Filter};
use model::reason::Reason;
use model::record::audit::Status;
use model::text;
use model::time::{DAY_MS, MINUTE_MS};
use schemars::JsonSchema;
use serde::Serialize;

use super::audit::moment;
use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::request::Asked;
use crate::studio::Studio;

/// What happened, in numbers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NumbersView {
    from_ms: i64,
    to_ms: i64,
    bucket_ms: i64,
    times: Vec<i64>,
    calls: Vec<u64>,
    refused: Vec<u64>,
    failed: Vec<u64>,
    p50_us: Vec<Option<u64>>,
    p90_us: Vec<Option<u64>>,
    p99_us: Vec<Option<u64>>,
    reasons: Vec<ReasonCount>,
    rows: Vec<NumbersRow>,
    approvals: ApprovalNumbers,
    total: u64,
    cut: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReasonCount {
    code: String,
    count: u64,
    meaning: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NumbersRow {
    name: String,
    calls: u64,
    done: u64,
    refused: u64,
    failed: u64,
    p50_us: Option<u64>,
    p90_us: Option<u64>,
    p99_us: Option<u64>,
}

/// How long people took to answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalNumbers {
    count: usize,
    answered: usize,
    p50_ms: Option<u64>,
    p90_ms: Option<u64>,
    max_ms: Option<u64>,
}

/// What is counted of one group of calls.
#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    done: u64,
    refused: u64,
    failed: u64,
    elapsed_us: Vec<u64>,
}

impl Tally {
    fn add(&mut self, entry: &AuditEntry) {
        self.calls += 1;
        let Some(closing) = &entry.closing else {
            return;
        };
        match closing.status {
            Status::Done => self.done += 1,
            Status::Refused => self.refused += 1,
            Status::Failed | Status::Cancelled | Status::Crashed => self.failed += 1,
        }
        // What was refused did no work, and would make every tool look fast.
        if let (Status::Done, Some(timing)) = (closing.status, closing.timing) {
            self.elapsed_us.push(timing.total_us);
        }
    }
}

/// The value below which so many of a hundred lie: the nearest rank.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

pub(crate) fn numbers(studio: &Studio, asked: &Asked) -> ApiResult<NumbersView> {
    let to_ms = engine::now_ms();
    let from_ms = moment(asked, "since")?.unwrap_or(to_ms - DAY_MS);
    if from_ms >= to_ms {
        return Err(ApiError::request("`since` lies in the future"));
    }
    let by_caller = match asked.word("by")? {
        None | Some("tool") => false,
        Some("caller") => true,
        Some(_) => return Err(ApiError::request("`by` is `tool` or `caller`")),
    };
    let points = i64::try_from(limit::NUMBERS_POINTS_MAX).unwrap_or(1);
    let bucket_ms = bucket((to_ms - from_ms) / points);
    let first = from_ms - from_ms.rem_euclid(bucket_ms);
    let mut buckets: BTreeMap<i64, Tally> = BTreeMap::new();
    let mut at = first;
    while at <= to_ms {
        buckets.insert(at, Tally::default());
        at += bucket_ms;
    }
    let mut groups: BTreeMap<String, Tally> = BTreeMap::new();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    let mut total = 0;
    let is_cut = each_call(studio, from_ms, &mut |entry| {
        total += 1;
        let opening = &entry.opening;
        let bucket = opening.at_ms - opening.at_ms.rem_euclid(bucket_ms);
        buckets.entry(bucket).or_default().add(entry);
        let name = if by_caller {
            &opening.caller
        } else {
            &opening.tool
        };
        groups.entry(text::one_line(name)).or_default().add(entry);
        let error = entry
            .closing
            .as_ref()
            .and_then(|closing| closing.error.as_ref());
        if let Some(error) = error {
            *reasons.entry(error.code.clone()).or_default() += 1;
        }
    })?;
    let mut view = NumbersView {
        from_ms,
        to_ms,
        bucket_ms,
        times: Vec::new(),
        calls: Vec::new(),
        refused: Vec::new(),
        failed: Vec::new(),
        p50_us: Vec::new(),
        p90_us: Vec::new(),
        p99_us: Vec::new(),
        reasons: counted(reasons),
        rows: rows(groups),
        approvals: approvals(studio, from_ms)?,
        total,
        cut: is_cut,
    };
    for (at, mut tally) in buckets {
        tally.elapsed_us.sort_unstable();
        view.times.push(at);
        view.calls.push(tally.calls);
        view.refused.push(tally.refused);
        view.failed.push(tally.failed);
        view.p50_us.push(percentile(&tally.elapsed_us, 50));
        view.p90_us.push(percentile(&tally.elapsed_us, 90));
        view.p99_us.push(percentile(&tally.elapsed_us, 99));
    }
    Ok(view)
}

/// A round length of time that is at least this long.
fn bucket(least_ms: i64) -> i64 {
    let round = [1, 5, 10, 30, 60, 180, 360, 720, 1_440, 10_080];
    let mut round = round.into_iter().map(|minutes| minutes * MINUTE_MS);
    round
        .find(|length| *length >= least_ms)
        .unwrap_or_else(|| least_ms.max(MINUTE_MS))
}

/// Every call since a moment, the newest first. Returns whether older ones were left out.
fn each_call(studio: &Studio, since_ms: i64, each: &mut dyn FnMut(&AuditEntry)) -> ApiResult<bool> {
    let mut filter = Filter {
        since_ms: Some(since_ms),
        limit: Some(2_000),
        ..Filter::default()
    };
    let mut read = 0;
    while read < limit::NUMBERS_CALLS_MAX {
        let page = studio.engine().store().audit().list(&filter);
        let page = page.map_err(|fault| studio.alarm("the audit cannot be read", &fault))?;
        let Some(last) = page.last() else {
            return Ok(false);
        };
        filter.before = Some(last.sequence);
        read += page.len();
        page.iter().for_each(&mut *each);
    }
    Ok(true)
}

fn counted(reasons: BTreeMap<String, u64>) -> Vec<ReasonCount> {
    let meaning = |code: &str| {
        let mut all = Reason::ALL.iter();
        all.find(|reason| reason.code() == code)
            .map(|reason| reason.meaning())
    };
    let count = |(code, count): (String, u64)| ReasonCount {
        meaning: meaning(&code),
        code,
        count,
    };
    let mut counted: Vec<_> = reasons.into_iter().map(count).collect();
    counted.sort_by_key(|one| std::cmp::Reverse(one.count));
    counted
}

fn rows(groups: BTreeMap<String, Tally>) -> Vec<NumbersRow> {
    let row = |(name, mut tally): (String, Tally)| {
        tally.elapsed_us.sort_unstable();
        NumbersRow {
            name,
            calls: tally.calls,
            done: tally.done,
            refused: tally.refused,
            failed: tally.failed,
            p50_us: percentile(&tally.elapsed_us, 50),
            p90_us: percentile(&tally.elapsed_us, 90),
            p99_us: percentile(&tally.elapsed_us, 99),
        }
    };
    let mut rows: Vec<_> = groups.into_iter().map(row).collect();
    rows.sort_by_key(|one| std::cmp::Reverse(one.calls));
    rows.truncate(limit::NUMBERS_ROWS_MAX);
    rows
}

fn approvals(studio: &Studio, since_ms: i64) -> ApiResult<ApprovalNumbers> {
    let all = studio.engine().approvals().list(Listing::All);
    let all = all.map_err(|fault| studio.alarm("the inbox cannot be read", &fault))?;
    let recent: Vec<_> = all
        .iter()
        .filter(|row| row.asked_at_ms >= since_ms)
        .collect();
    let waited = recent.iter().filter_map(|row| {
        let waited = row.answered_at_ms?.saturating_sub(row.asked_at_ms);
        u64::try_from(waited).ok()
    });
    let mut waited: Vec<_> = waited.collect();
    waited.sort_unstable();
    Ok(ApprovalNumbers {
        count: recent.len(),
        answered: waited.len(),
        p50_ms: percentile(&waited, 50),
        p90_ms: percentile(&waited, 90),
        max_ms: waited.last().copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_there() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(percentile(&hundred, 50), Some(50));
        assert_eq!(percentile(&hundred, 99), Some(99));
        assert_eq!(percentile(&[7], 50), Some(7));
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(percentile(&[1, 2], 99), Some(2));
    }

    #[test]
    fn a_chart_has_few_points() {
        assert_eq!(bucket(1), MINUTE_MS);
        assert_eq!(bucket(DAY_MS / 120), 30 * MINUTE_MS);
        assert_eq!(bucket(7 * DAY_MS / 120), 180 * MINUTE_MS);
    }
}
