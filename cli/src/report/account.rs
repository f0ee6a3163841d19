//! The tracer's own counts of the traces, and whether they balance.

use super::data::Accounts;
use super::text::cut;
use crate::failure::Failure;
use crate::progress::Bar;
use std::path::PathBuf;
use tracepoint_reader::account::Account;
use tracepoint_reader::{Parallelism, ReadError, Trace, verify_with};

/// The failed comparisons that are named at most.
const FAILURES: usize = 20;
/// The reasons of losses that are named at most.
const REASONS: usize = 100;

/// The sum of all accounts; `None` if there is none. Reads the traces once, with all processors.
pub(super) fn accounts(paths: &[PathBuf], trace: &Trace) -> Result<Option<Accounts>, Failure> {
    let mut sum = Accounts::default();
    let mut found = 0;
    for path in trace.metadata().map(|(path, _)| path) {
        if trace.dt_files().all(|dt| dt.path() != path) {
            found += usize::from(add_found(&mut sum, Account::open(path))?);
        }
    }
    for dt in trace.dt_files() {
        match dt.account()? {
            Some(account) => found += usize::from(add(&mut sum, &account)),
            None => sum.incomplete += 1,
        }
    }
    if found == 0 {
        return Ok(None);
    }
    let mut bar = Bar::new();
    for path in paths {
        let report = verify_with(path, Parallelism::default(), &mut |done, all| bar.set("verifying", done, all))?;
        sum.checks += report.checks.len();
        sum.failed += report.failures().count();
        let failures = report.failures().map(|check| {
            cut(&format!(
                "{}: {}: {}, {} (rule {})",
                check.subject, check.compares, check.left, check.right, check.rule
            ))
        });
        sum.failures.extend(failures.take(FAILURES - sum.failures.len()));
    }
    Ok(Some(sum))
}

fn add_found(sum: &mut Accounts, account: Result<Account, ReadError>) -> Result<bool, ReadError> {
    match account {
        Err(ReadError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            sum.incomplete += 1;
            Ok(false)
        }
        account => Ok(add(sum, &account?)),
    }
}

/// Adds an account. Of a trace in chunks, the last one has that of all.
fn add(sum: &mut Accounts, account: &Account) -> bool {
    if account.chunk.as_ref().is_some_and(|chunk| !chunk.last) {
        return false;
    }
    sum.incomplete += u64::from(!account.complete && !account.snapshot);
    let mut lose = |reason: &str, count: u64| {
        if count > 0 {
            let reason = cut(if sum.lost.len() < REASONS { reason } else { "others" });
            let lost = sum.lost.entry(reason).or_default();
            *lost = lost.saturating_add(count);
        }
    };
    for channel in &account.channels {
        for event in &channel.events {
            sum.fired = sum.fired.saturating_add(event.fired);
            sum.recorded = sum.recorded.saturating_add(event.recorded);
            sum.filtered = sum.filtered.saturating_add(event.filtered);
            sum.suppressed = sum.suppressed.saturating_add(event.suppressed);
            event.lost.iter().for_each(|(reason, count)| lose(reason, *count));
        }
        for stream in &channel.streams {
            let named = stream.sink_lost.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
            stream.sink_lost.iter().for_each(|(reason, count)| lose(reason, *count));
            lose("overwritten", stream.overwritten);
            lose("sink", stream.sink.saturating_sub(named));
        }
    }
    true
}
