//! The items that other crates of the project use, in addition to the API; the facade does not re-export them. Not part of the API: they change
//! without notice.
//!
//! * The agent (`session`) lists the events of loaded objects and of markers registered at run time, and is notified of new ones.
//! * The bridge to the crate `tracing` registers markers at run time, and is notified of switches.
//! * `session-spec`, `session` and `controller` suggest names.

pub use crate::hooks::{Registration, announce, on_register, on_switch, switched};
pub use crate::marker::descriptor::{MarkerParts, ValuesType};
pub use crate::marker::runtime::{MAX_RUNTIME_MARKERS, RuntimeMarker};
pub use crate::nearest::nearest_names;
pub use crate::registry::{PinnedTables, has_several_objects, object_generation, pin_objects};
pub use tracepoint_ring::field::At;
pub use tracepoint_ring::thread::leave_inherited_scheduling;
pub use tracepoint_ring::update::{UpdateGuard, lock_without_setup as update_lock};
