//! Atomics and a lock that tell helgrind what they order.
//!
//! Helgrind knows the happens-before edges of the pthread library. To it a Release store and an Acquire load are plain moves, and the
//! standard library's mutex is a word and a system call, so it would report everything that they protect. These types annotate each
//! operation according to the ordering that the caller names: if that is weakened, helgrind reports the race.
//!
//! Every store is an exchange, whatever its ordering: helgrind treats a locked instruction as a read, so it reports no race between two of
//! these operations, but does report one with a plain access.

mod atomic;
mod mutex;
mod request;

pub use atomic::{AtomicPtr, AtomicUsize};
pub use mutex::{Mutex, MutexGuard};
