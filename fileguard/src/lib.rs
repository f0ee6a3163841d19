//! Files of a library inside an unknown program: other processes may truncate a file that the library has mapped, and the program may close the
//! library's descriptors.
//!
//! Use this crate directly; it does not depend on tracepoints.
//!
//! * [`mapping`]: the program survives the truncation of a mapped file.
//! * [`descriptor`]: a descriptor is compared before each use, closed only if it still belongs to the library, and reopened where possible.

pub mod descriptor;
pub mod mapping;

pub use descriptor::{
    CheckedFd, Descriptor, GuardedFd, ReopenableFd, Source, Waker, is_closed, names, read, read_to_string, retried,
    shortage_mend,
};
pub use mapping::MappingGuard;
