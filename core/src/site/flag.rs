//! The flag form: a site loads the key's flag.

use super::{SiteReport, SwitchError, Table};
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

/// Expands to nothing: with flag sites, linked objects do not register.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_anchor {
    () => {};
}

/// Does nothing: sites load the flags of the keys.
#[expect(clippy::unnecessary_wraps, reason = "the patched form can fail")]
pub(crate) fn switch(_: &[(&'static Key, bool)], _: &UpdateGuard<'_>) -> Result<(), SwitchError> {
    Ok(())
}

/// A registered linked object: there is none.
#[derive(Debug)]
pub(crate) enum Object {}

impl Object {
    pub(crate) const fn table(&self, _: Table) -> &[*const ()] {
        match *self {}
    }
}

pub(crate) fn objects<'l>(_: &'l UpdateGuard<'_>) -> impl Iterator<Item = &'l Object> {
    std::iter::empty()
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
