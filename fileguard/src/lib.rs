//! Files of a library in a program that it does not know: others may cut off a file that it has mapped, and the program may close its descriptors.
//!
//! * [`mapping`]: a program survives that a mapped file is cut off.
//! * [`descriptor`]: a descriptor is compared before each use, closed only if it is still the library's, and opened again where that is possible.

pub mod descriptor;
pub mod mapping;

pub use descriptor::{
    Checked, Descriptor, Kept, Reopened, Source, Waker, is_closed, names, read, read_to_string, retried, shortage_mend,
};
pub use mapping::Guarded;
