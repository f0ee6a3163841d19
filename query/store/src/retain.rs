//! Removes the oldest days.

use crate::error::StoreError;
use crate::plan::{Retained, Retention, plan};
use crate::store::Store;

/// Removes the oldest days, of all tables: all or, after an error, none of them; in S3 an error may leave a part, which is removed the next
/// time. Events without a time are in no day, and stay. Waits for another process that compacts or removes, and has processes that complete a
/// trace wait.
///
/// # Errors
/// [`StoreError::Io`].
pub fn retain(store: &Store, retention: Retention) -> Result<Retained, StoreError> {
    store.backend.maintain()?.retain(&|parts| plan(parts, retention))
}
