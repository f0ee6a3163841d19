//! The state of tracing in this process: the declared tracepoints and markers, the mechanisms in use, and their limits.
//!
//! ```
//! use tracepoint::runtime;
//!
//! tracepoint::define_trace! {
//!     provider = "florist";
//!     /// A customer has paid.
//!     pub paid(cents: u64) { cents: u64 = cents }
//! }
//!
//! // Declarations are listed before they are reached for the first time.
//! let paid = runtime::tracepoints().find(|tracepoint| tracepoint.full_name() == "florist:paid").ok_or("not linked")?;
//! assert_eq!((paid.doc(), paid.is_on()), ("A customer has paid.", false));
//!
//! // A misspelt name is an error with suggestions.
//! assert_eq!(tracepoint::find("florist:payd").unwrap_err().nearest(), ["florist:paid"]);
//!
//! println!("{}", runtime::platform()); // how sites are switched, and which clock is used
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The lists contain all linked objects, also those that `dlopen` has loaded. Listing takes a lock that sites do not take.
//!
//! Next: [`usdt`] for other tools that find the same tracepoints; [`probe`](crate::probe) to connect a function to one.

pub use tracepoint_core::{
    Argument, Location, MAX_THREADS, ParseLevelError, Platform, TracepointNotFound, markers, platform, tracepoints,
    unserved_events, usdt,
};
