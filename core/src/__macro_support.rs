//! The items that the expansions of this crate's macros name, in the crates of users. Not part of the API: they change without notice.

mod list;

pub use crate::error::RegisterError;
pub use crate::fire::{EmitProof, EventOrigin, Stage, derived, fire_fast, fire_full};
pub use crate::key::Key;
pub use crate::location::{Location, crate_name};
pub use crate::marker::Marker;
pub use crate::marker::declared::MarkerType;
pub use crate::marker::descriptor::{MarkerParts, ValuesType};
pub use crate::marker::note::{Note, fill_words, name_word};
pub use crate::marker::stage::mark;
pub use crate::probe::DEFAULT_PRIORITY;
pub use crate::probe::handle::inert;
pub use crate::probe::set::{ArgumentsType, ProbeSet};
#[cfg(not(patched_sites))]
pub use crate::registry::{MARKERS, TRACEPOINTS};
#[cfg(patched_sites)]
pub use crate::site::{register_object, unregister_object};
pub use crate::tracepoint::{
    Argument, Dispatch, Tracepoint, TracepointParts, TracepointType, probes_changed, register,
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
    Array, At, Base, Be, ByteOrder, Concat, EnumLabel, FieldDescriptor, FieldType, IntegerType, PathBytes, Sequence,
    Text, TextBuffer, debug, display, optional_debug, optional_display,
};
pub use tracepoint_ring::thread::ThreadSlot;
