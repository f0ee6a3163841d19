//! Descriptors of a library in a program that may close any descriptor.
//!
//! Daemons and sandboxes close every descriptor above 2 (`close_range(3, ~0, 0)`, or a loop), including the descriptors of libraries. The next file
//! that the program opens may get the number of one of them. A library that keeps using the number then writes into the program's file, and closes it
//! on drop.
//!
//! * [`GuardedFd`] has a high number, which files of the program rarely get. It compares the inode before each use, and closes the descriptor only if the
//!   inode is still the same.
//! * [`ReopenableFd`] also has the file's path, and opens it again.
//! * [`Waker`] wakes a thread in `poll`; the thread also notices when the program has closed the descriptors.
//!
//! Descriptors without an inode of their own (eventfd, epoll, inotify, timerfd) cannot be kept in this way. A descriptor that is opened, used and
//! closed within one call is a [`CheckedFd`]: dropping a file that the program has closed makes the standard library abort a debug build.
//!
//! ```
//! use fileguard::GuardedFd;
//! use std::fs::File;
//! use std::io::Write;
//!
//! let file = GuardedFd::new(tempfile::tempfile()?)?;
//! file.get()?.write_all(b"the descriptor is still the library's")?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod checked_fd;
mod closing;
mod guarded_fd;
mod limit;
mod reopenable_fd;
mod retry;
mod waker;
mod whole;

pub use checked_fd::CheckedFd;
pub use guarded_fd::{Descriptor, GuardedFd};
pub use limit::shortage_mend;
pub use reopenable_fd::ReopenableFd;
pub use retry::{is_closed, retried};
pub use waker::{Source, Waker};
pub use whole::{names, read, read_to_string};
