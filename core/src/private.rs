//! The items that expansions of the macros use. Not part of the API: they change without notice.

mod list;

pub use crate::fire::{Emitted, Entered, Stage, derived, fire_fast, fire_full};
pub use crate::key::Key;
pub use crate::location::{Location, crate_name};
pub use crate::marker::Marker;
pub use crate::marker::declared::MarkerType;
pub use crate::marker::descriptor::{MarkerParts, ValuesType};
pub use crate::marker::note::{Note, fill_words, name_word};
pub use crate::marker::runtime::{
    MAX_RUNTIME_MARKERS, Registered, RuntimeMarker, announce, on_register, on_switch, switched,
};
pub use crate::marker::stage::mark;
pub use crate::nearest::nearest_names;
pub use crate::probe::handle::inert;
pub use crate::probe::set::{ArgumentsType, ProbeSet};
pub use crate::probe::{DEFAULT_PRIORITY, Probe};
#[cfg(patched_sites)]
pub use crate::registry::register_object;
#[cfg(not(patched_sites))]
pub use crate::registry::{MARKERS, TRACEPOINTS};
pub use crate::registry::{PinnedTables, has_several_objects, object_generation, pin_objects};
#[cfg(patched_sites)]
pub use crate::site::unregister_object;
pub use crate::tracepoint::{
    Argument, Served, Tracepoint, TracepointDescriptor, TracepointParts, TracepointType, probes_changed, register,
};
pub use crate::values::{IsEvent, IsSpan, by_value, misused};
#[cfg(not(patched_sites))]
pub use linkme;
pub use tracepoint_macros::{call, define_trace, trace_mark};
pub use tracepoint_ring::Level;
pub use tracepoint_ring::field::argument::{Absent, Argument as TracedArgument, NoField};
pub use tracepoint_ring::field::conditional::{Conditional, count, joined, joined_length, present, text_of};
pub use tracepoint_ring::field::expression::{
    array, duration, optional, optional_path, optional_text, path, pointer, printed, sequence, system_time, text,
};
pub use tracepoint_ring::field::words::Words;
pub use tracepoint_ring::field::{
    Array, At, Base, Be, Both, ByteOrder, EnumLabel, FieldDescriptor, FieldType, IntegerType, PathBytes, Sequence,
    Text, TextBuffer, debug, display, optional_debug, optional_display,
};
pub use tracepoint_ring::thread::{
    ThreadSlot, inherit_scheduling, leave_inherited_scheduling, never_trace_this_thread,
};
pub use tracepoint_ring::update::{UpdateGuard, lock_without_setup as update_lock};
