//! Atomics and a lock that tell helgrind what they order.
//!
//! Helgrind knows the orders that the pthread library makes. A release store and an acquire load are plain moves to it, and the
//! standard library's mutex is a word and a system call, so it would report everything that they protect. These twins say it
//! in helgrind's own terms, from the ordering that the caller names: weaken that, and helgrind reports the race.
//!
//! A store is made by an exchange, whatever its ordering. Helgrind takes a locked instruction for a read, so it reports no race
//! between two of these operations, but does report one with a plain access.

mod atomic;
mod mutex;
mod request;

pub use atomic::{AtomicPtr, AtomicUsize};
pub use mutex::{Mutex, MutexGuard};
