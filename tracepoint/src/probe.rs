//! Probes: functions with a tracepoint's exact argument types, connected while the program runs.
//!
//! [`define_trace!`](crate::define_trace) generates `register_trace_NAME` and `unregister_trace_NAME` for each tracepoint. A tool that is not
//! built with the declaring crate finds the tracepoint by its name, and gets a `Probe<Dynamic>`:
//!
//! ```
//! use tracepoint::probe::RegisterError;
//!
//! tracepoint::define_trace! { provider = "grocery"; pub paid(cents: u64) { cents: u64 = cents } }
//!
//! let tracepoint = tracepoint::find("grocery:paid")?;
//! let probe = tracepoint.register::<fn(u64)>(|cents| println!("{cents}"))?;
//! tracepoint::trace!(paid(1250));
//! probe.unregister(); // after it returns, the probe is not running and never will again
//!
//! let error = tracepoint.register::<fn(u8)>(|_| ()).unwrap_err();
//! assert!(matches!(error, RegisterError::Signature { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A probe runs on the thread that reaches the site, maybe in a signal handler: it should neither block nor allocate. A probe that panics is
//! disconnected and counted. Registering patches the sites, and fails with [`RegisterError::Switch`] in a process that may not change its
//! own code; unregistering waits for a grace period.
//!
//! Next: [`probes`](crate#feature-flags) (feature `session`) for counts and histograms, [`marker`](crate::marker) for events of any type.

pub use tracepoint_core::probe::Dynamic;
pub use tracepoint_core::{
    MAX_PROBE_DEPTH, Probe, RegisterError, SiteSwitchError, in_probe, silence_panics, synchronize,
};
