//! Reports the mechanisms that this process uses on its target and operating system, and those that it was refused.

use crate::site;
use std::fmt;
use tracepoint_ring::{clock, membarrier, update};

/// How tracepoints work in this process. `Display` gives a summary in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Platform {
    /// The form of a site: `patched` (one instruction while off), `indirect` (a jump through a word of data) or `flag` (a load and a branch).
    pub sites: &'static str,
    /// The number of sites, including dead copies that the linker kept; `None` for flag sites, which are not counted.
    pub site_count: Option<usize>,
    /// Number of times a site was not switched because its bytes had neither of the two forms: a debugger's breakpoint, a corrupted table.
    pub foreign_sites: u64,
    /// Number of times a site could not be written: when it was to be switched off (it then calls the cold path needlessly), or when its object was
    /// loaded while its key was on.
    pub stuck_sites: u64,
    /// Number of times the protection of code that was made writable, to switch sites in it, could not be restored immediately. Each later switch
    /// retries.
    pub stayed_writable: u64,
    /// Number of linked objects whose code segments were not found, so that their sites are not switched.
    pub unknown_objects: usize,
    /// How grace periods order readers and writers: by `membarrier` (readers execute no fence) or by `fences`.
    pub grace_periods: &'static str,
    /// Number of replaced lists and probes that were never freed, because the kernel refused the `membarrier` that their grace period needs.
    pub never_freed: usize,
    /// The clock in use, and the bound on its error, or the reason that it is not the time stamp counter. Programs should use [`clock::name`].
    pub clock: String,
}

/// Reports how tracepoints work in this process.
pub fn platform() -> Platform {
    // Taking the lock triggers the choices that are made once per process.
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
        never_freed: update::kept(),
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
            write!(f, ", {} times a site held a foreign byte and was not switched", self.foreign_sites)?;
        }
        if self.stuck_sites > 0 {
            write!(f, ", {} times a site could not be written", self.stuck_sites)?;
        }
        if self.stayed_writable > 0 {
            write!(f, ", {} times code stayed writable after a switch", self.stayed_writable)?;
        }
        match self.unknown_objects {
            0 => {}
            1 => write!(f, ", 1 object whose code was not found")?,
            more => write!(f, ", {more} objects whose code was not found")?,
        }
        if self.never_freed > 0 {
            write!(f, ", {} replaced lists and probes never freed (the kernel refuses membarrier)", self.never_freed)?;
        }
        Ok(())
    }
}
