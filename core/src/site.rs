//! Sites: the places in the user's code where tracepoints and hand-written markers are called. A site enters the cold path while its
//! [key](crate::key) is on.
//!
//! A site has one of two forms:
//!
//! * `patch`: one instruction, which does nothing while the key is off and jumps to the cold path while it is on. Turning a key overwrites
//!   the instruction at each of its sites, or a word of data that the instruction reads (`TRACEPOINT_SITES`). x86-64 and aarch64 Linux.
//! * `flag`: a relaxed load of the key's flag and a predicted branch. Everywhere else, and with the cargo feature `flag-sites`.
//!
//! `build.rs` chooses the form. Each form provides the macro `__tracepoint_site!(KEY)`, which is true while the key is on; [`switch`];
//! [`report`]; and [`pin_objects`].

mod batch;
#[cfg(not(patched_sites))]
mod flag;
#[cfg(patched_sites)]
mod patch;

pub(crate) use batch::KeyBatch;
#[cfg(not(patched_sites))]
use flag::switch;
#[cfg(not(patched_sites))]
pub(crate) use flag::{object_generation, pin_objects, report};
#[cfg(patched_sites)]
use patch::switch;
#[cfg(patched_sites)]
pub(crate) use patch::{Table, object_generation, objects, own_object, pin_objects, report};
#[cfg(patched_sites)]
pub use patch::{register_object, unregister_object};

use std::fmt;

/// The sites of a key could not be switched on: the operating system refuses both ways of writing to the program's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSwitchError {
    pub(crate) proc_mem: String,
    pub(crate) mprotect: String,
}

impl fmt::Display for SiteSwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this process may not change its own code (/proc/self/mem: {}; mprotect: {}): build tracepoint with the feature \
             `flag-sites`, whose sites are not patched",
            self.proc_mem, self.mprotect
        )
    }
}

impl std::error::Error for SiteSwitchError {}

/// The state of the sites of this process; [`Platform`](crate::Platform) has the same fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteReport {
    /// `patched`, `indirect`, or `flag`.
    pub(crate) form: &'static str,
    pub(crate) sites: Option<usize>,
    pub(crate) foreign: u64,
    pub(crate) stuck: u64,
    pub(crate) stayed_writable: u64,
    pub(crate) unknown_objects: usize,
}
