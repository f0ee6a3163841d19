//! What this process is given by its target and its operating system, and what it had to do without.

use crate::site;
use std::fmt;
use tracepoint_ring::{clock, membarrier, update};

/// How tracepoints work in this process. Its `Display` is one line for an engineer to read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Platform {
    /// The form of a site: `patched` (one instruction while off) or `flag` (a load and a branch).
    pub sites: &'static str,
    /// How many sites there are, dead copies that the linker kept included; `None` where they are not counted.
    pub site_count: Option<usize>,
    /// How often a site was left alone because its bytes were neither of its two forms: a debugger's breakpoint, a corrupted
    /// table.
    pub foreign_sites: u64,
    /// How often a site could not be switched: off (it calls the cold path for nothing), or on, in an object that was loaded
    /// later.
    pub stuck_sites: u64,
    /// How often code that was made writable, to switch sites in it, could not be made unwritable again at once. Each switch tries
    /// it again.
    pub stayed_writable: u64,
    /// How many linked objects there are whose code is not known, and whose sites are therefore left alone.
    pub unknown_objects: usize,
    /// What a grace period begins with: `membarrier` (the reader pays nothing) or `fences`.
    pub grace_periods: &'static str,
    /// How many replaced lists and probes were kept for ever, because the kernel refused the fence by which it could be known
    /// that nobody uses them.
    pub kept: usize,
    /// The clock: which, and the bound on its error, or why it is not the time stamp counter. [`clock::name`] tells programs.
    pub clock: String,
}

/// How tracepoints work in this process.
pub fn platform() -> Platform {
    // Takes the choices that are made once, if they are not made yet.
    let locked = update::lock();
    let sites = site::report(&locked);
    drop(locked);
    Platform {
        sites: sites.form,
        site_count: sites.sites,
        foreign_sites: sites.foreign,
        stuck_sites: sites.stuck,
        stayed_writable: sites.stayed_writable,
        unknown_objects: sites.unknown_objects,
        grace_periods: membarrier::name(),
        kept: update::kept(),
        clock: clock::describe(),
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sites: {}", self.sites)?;
        if let Some(count) = self.site_count {
            write!(f, " ({count})")?;
        }
        write!(f, ", grace periods by {}, clock: {}", self.grace_periods, self.clock)?;
        if self.foreign_sites > 0 {
            write!(f, ", {} times a site held a foreign byte and was left alone", self.foreign_sites)?;
        }
        if self.stuck_sites > 0 {
            write!(f, ", {} times a site could not be written", self.stuck_sites)?;
        }
        if self.stayed_writable > 0 {
            write!(f, ", {} times code stayed writable", self.stayed_writable)?;
        }
        match self.unknown_objects {
            0 => {}
            1 => write!(f, ", an object whose code is not known")?,
            more => write!(f, ", {more} objects whose code is not known")?,
        }
        if self.kept > 0 {
            write!(f, ", {} old lists and probes kept (the kernel refuses membarrier)", self.kept)?;
        }
        Ok(())
    }
}
