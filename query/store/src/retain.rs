//! Removes the oldest days.

use crate::error::StoreError;
use crate::plan::{Retention, RetentionSummary, plan};
use crate::store::Store;

/// Removes the oldest days from all tables: all of them or, after an error, none. In S3 an error may leave a part of a day, which the next run
/// removes. Events without a time belong to no day, and stay. Waits for other processes that compact or remove; processes that complete a trace wait
/// meanwhile.
///
/// # Errors
/// [`StoreError::Io`].
pub fn retain(store: &Store, retention: Retention) -> Result<RetentionSummary, StoreError> {
    store.backend.maintain()?.retain(&|parts| plan(parts, retention))
}
