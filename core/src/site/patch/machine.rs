//! The instruction of a site on this architecture: its two forms, and what it takes to write them. One file for each architecture, with the
//! same items:
//!
//! * the macros `__tracepoint_site!`, and `__tracepoint_call_with_object!` for constructors and destructors;
//! * `LENGTH`, `SWITCHED_AT`, `Switched`: the length of the instruction, and the part of it that is switched;
//! * `Instruction`: what distinguishes one site's instruction from another's;
//! * `indirect`: the jump through a word of data;
//! * `BREAKPOINT`, `page_size`, `own_description`, `make_visible`, `executes_writes`, `discard_translations`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;

/// The two forms of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Off,
    On,
}

impl Form {
    pub(super) const fn of(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}
