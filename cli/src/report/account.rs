//! The tracer's own counts of the traces, and their balance.

use super::data::Accounts;
use super::text::cut;
use crate::counts::Counts;
use crate::failure::Failure;
use crate::progress::Bar;
use std::path::PathBuf;
use tracepoint_reader::{Parallelism, Trace, verify_with};

/// Maximum number of failed comparisons that are listed.
const FAILURES: usize = 20;

/// The sum of all accounts; `None` if there is none. Reads the traces once, on all processors.
pub(super) fn accounts(paths: &[PathBuf], trace: &Trace) -> Result<Option<Accounts>, Failure> {
    let Some(mut counts) = Counts::of(trace)? else { return Ok(None) };
    counts.lost = std::mem::take(&mut counts.lost).into_iter().map(|(reason, count)| (cut(&reason), count)).collect();
    let mut sum = Accounts { counts, ..Accounts::default() };
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
