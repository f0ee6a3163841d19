//! Files of a library inside an unknown program: other processes may truncate a file that the library has mapped, and the program may close the
//! library's descriptors.
//!
//! Use this crate directly; it does not depend on tracepoints. Only Linux has all of it: elsewhere descriptors are used without comparison, and there
//! is no guard of mappings.
//!
//! * [`mapping`]: the program survives the truncation of a mapped file.
//! * [`descriptor`]: a descriptor is compared before each use, closed only if it still belongs to the library, and reopened where possible.

#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
pub mod descriptor;
#[cfg(target_os = "linux")]
pub mod mapping;
mod offsets;

pub use descriptor::{
    CheckedFd, Descriptor, GuardedFd, Waker, is_closed, read, read_to_string, retried, shortage_mend,
};
#[cfg(target_os = "linux")]
pub use descriptor::{ReopenableFd, Source, names};
#[cfg(target_os = "linux")]
pub use mapping::MappingGuard;
pub use offsets::FileExt;
