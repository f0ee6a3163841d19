//! The flag form: a site loads the key's flag.

use super::{SiteReport, SwitchError, Table};
use crate::key::Key;
use tracepoint_ring::update::UpdateGuard;

/// Whether the key is on, as a site asks it.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_site {
    ($key:path) => {
        $key.is_on()
    };
}

/// Nothing has to be known of the objects that are linked.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_anchor {
    () => {};
}

/// The flags are the keys' own: nothing is left to do.
#[expect(clippy::unnecessary_wraps, reason = "the twin can fail")]
pub(crate) fn switch(_: &[(&'static Key, bool)], _: &UpdateGuard<'_>) -> Result<(), SwitchError> {
    Ok(())
}

/// A linked object that made itself known: there is none.
#[derive(Debug)]
pub(crate) enum Object {}

impl Object {
    pub(crate) const fn table(&self, _: Table) -> &[*const ()] {
        match *self {}
    }
}

/// Objects that made themselves known.
pub(crate) fn objects<'l>(_: &'l UpdateGuard<'_>) -> impl Iterator<Item = &'l Object> {
    std::iter::empty()
}

/// They never come, and never go.
pub(crate) const fn changes(_: &UpdateGuard<'_>) -> u64 {
    0
}

/// There is none to be kept.
pub(crate) fn keep_loaded<R>(list: impl FnOnce(&UpdateGuard<'_>) -> R) -> R {
    list(&tracepoint_ring::update::lock_without_setup())
}

pub(crate) fn report(_: &UpdateGuard<'_>) -> SiteReport {
    SiteReport { form: "flag", ..SiteReport::default() }
}
