//! Descriptors of a library in a program that may close all it finds.
//!
//! Daemons and sandboxes close every descriptor above 2 (`close_range(3, ~0, 0)`, or a loop), those of libraries included. The next file that the
//! program opens then has the number of one of them. A library that goes on writes into that file, and closes it when it drops its own.
//!
//! * [`Kept`] has a high number, which files of the program rarely get; it is compared by its inode before each use, and closed only if it is
//!   still the same.
//! * [`Reopened`] has its path, too, and is opened again.
//! * [`Waker`] wakes a thread in `poll`, and makes it notice that the program has closed the descriptors.
//!
//! Descriptors without an inode of their own (eventfd, epoll, inotify, timerfd) cannot be kept in this way. What is used for a moment only,
//! opened, used and closed by one call, is [`Checked`]: the standard library ends a debug build that drops a file which the program has closed.
//!
//! ```
//! use fileguard::Kept;
//! use std::fs::File;
//! use std::io::Write;
//!
//! let file = Kept::new(tempfile::tempfile()?)?;
//! file.get()?.write_all(b"the descriptor is still the library's")?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod checked;
mod closing;
mod kept;
mod limit;
mod reopened;
mod retry;
mod waker;
mod whole;

pub use checked::Checked;
pub use kept::{Descriptor, Kept};
pub use limit::shortage_mend;
pub use reopened::Reopened;
pub use retry::{is_closed, retried};
pub use waker::{Source, Waker};
pub use whole::{names, read, read_to_string};
