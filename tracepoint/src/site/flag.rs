//! The flag form: a site loads the key's flag.

use super::{SiteReport, SwitchError};
use crate::key::Key;
use crate::marker::Marker;
use crate::tracepoint::Tracepoint;

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
pub(crate) fn switch(_: &[(&'static Key, bool)]) -> Result<(), SwitchError> {
    Ok(())
}

/// A linked object that made itself known: there is none.
#[derive(Debug)]
pub(crate) enum Object {}

impl Object {
    pub(crate) const fn tracepoints(&self) -> &'static [&'static Tracepoint] {
        match *self {}
    }

    pub(crate) const fn markers(&self) -> &'static [&'static Marker] {
        match *self {}
    }
}

/// Objects that made themselves known.
pub(crate) fn objects() -> impl Iterator<Item = &'static Object> {
    std::iter::empty()
}

pub(crate) fn report() -> SiteReport {
    SiteReport { form: "flag", ..SiteReport::default() }
}
