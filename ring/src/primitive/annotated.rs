//! Atomics and a lock that describe their orderings to helgrind.
//!
//! Helgrind knows the happens-before edges of the pthread library. It sees a Release store and an Acquire load as plain moves, and the
//! standard library's mutex as a word and a system call, so it would report all data that they protect. These types annotate each
//! operation according to the ordering that the caller names: if that ordering is weakened, helgrind reports the race.
//!
//! Every store is an exchange, whatever its ordering: helgrind treats a locked instruction as a read, so it reports no race between two of
//! these operations, but does report one with a plain access.

mod atomic;
mod mutex;
mod request;

pub use atomic::{AtomicPtr, AtomicUsize};
pub use mutex::{Mutex, MutexGuard};
