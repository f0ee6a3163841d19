//! The counterpart of `liveness` on systems other than Linux, which run no process whose rings lie in files.

use crate::ring::Identity;
use std::path::Path;

pub(crate) const fn is_recording(_identity: &Identity, _directory: &Path) -> bool {
    false
}
