//! The clock that gives events their times: nanoseconds on the axis of `CLOCK_MONOTONIC`, which all processes of a machine share.
//!
//! ```
//! use tracepoint::clock;
//!
//! let begin = clock::now();
//! assert!(clock::now() >= begin);
//! println!("{}, at most {} ns off", clock::name(), clock::error_bound());
//! ```
//!
//! On x86-64 Linux it is the time stamp counter, and on aarch64 Linux the system counter, once a session finds that the kernel trusts it: one
//! reading of the counter and a multiplication, without a system call. Otherwise it is `clock_gettime`. [`select`] replaces it for the whole process, for simulations; a session does so with
//! `SessionBuilder::clock`. While channels with another clock are open, `select` fails with [`ClockInUse`], and a session does not start.
//!
//! The book: *Time*, for the error bound and the order of events on several processors.

pub use tracepoint_core::clock::{Clock, ClockInUse, error_bound, name, now, select, selected};
