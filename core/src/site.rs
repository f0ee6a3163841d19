//! Sites: the places where tracepoints and hand-written markers are called.
//!
//! The step before is the user's code; the next is the [key](crate::key), which a site has become part of, or asks.
//!
//! Two forms behind one name:
//!
//! * `patch`: one instruction, a `mov` while the key is off and a `jmp` into the cold path while it is on. Turning a key writes
//!   one byte of code at each of its sites. x86-64 Linux.
//! * `flag`: a relaxed load of the key's flag and a predicted branch. Everywhere else, and by the cargo feature `flag-sites`.
//!
//! `build.rs` chooses. Each form has the macro `__tracepoint_site!(KEY)`, true while the key is on; `__tracepoint_anchor!()`, which
//! makes the linked object that it stands in known to the core; [`switch`]; and [`report`].

#[cfg(not(patched_sites))]
mod flag;
#[cfg(patched_sites)]
mod patch;

#[cfg(not(patched_sites))]
pub(crate) use flag::{changes, keep_loaded, objects, report, switch};
#[cfg(patched_sites)]
pub(crate) use patch::{changes, keep_loaded, objects, report, switch};
#[cfg(patched_sites)]
pub use patch::{register_object, unregister_object};

use std::fmt;

/// What a linked object lists beside its sites.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(patched_sites), expect(dead_code, reason = "objects are not known"))]
pub(crate) enum Table {
    /// References to its tracepoints.
    Tracepoints,
    /// References to its markers.
    Markers,
}

/// Why the sites of a key could not be switched: the operating system lets nobody write to the program's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchError {
    pub(crate) proc_mem: String,
    pub(crate) mprotect: String,
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this process may not change its own code (/proc/self/mem: {}; mprotect: {}): build with the feature `flag-sites` of \
             tracepoint, whose sites need no patching",
            self.proc_mem, self.mprotect
        )
    }
}

impl std::error::Error for SwitchError {}

/// What is known of the sites of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteReport {
    /// `patched`, or `flag`.
    pub(crate) form: &'static str,
    /// How many sites there are; `None` if they are not counted.
    pub(crate) sites: Option<usize>,
    /// How often a site was left alone because its bytes were not ours.
    pub(crate) foreign: u64,
    /// How often a site could not be written: off, so that it calls the cold path for nothing; or on, in an object that came later.
    pub(crate) stuck: u64,
    /// How often code that was made writable stayed so.
    pub(crate) stayed_writable: u64,
    /// How many linked objects there are whose code is not known, so that their sites are foreign.
    pub(crate) unknown_objects: usize,
}
