//! The flag form: a site loads the key's flag.

use super::{SiteReport, SiteSwitchError};
use crate::key::Key;
use tracepoint_ring::update::UpdateGuard;

/// True while the key is on.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_site {
    ($key:path) => {
        $key.is_on()
    };
}

/// Does nothing: sites load the flags of the keys.
#[expect(clippy::unnecessary_wraps, reason = "the patched form can fail")]
pub(crate) fn switch(_: &[(&'static Key, bool)], _: &UpdateGuard<'_>) -> Result<(), SiteSwitchError> {
    Ok(())
}

pub(crate) const fn object_generation(_: &UpdateGuard<'_>) -> u64 {
    0
}

pub(crate) fn pin_objects<R>(list: impl FnOnce(&UpdateGuard<'_>) -> R) -> R {
    list(&tracepoint_ring::update::lock_without_setup())
}

pub(crate) fn report(_: &UpdateGuard<'_>) -> SiteReport {
    SiteReport { form: "flag", ..SiteReport::default() }
}
