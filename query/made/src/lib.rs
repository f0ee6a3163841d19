//! Traces that are made by hand, for tests: any schema, with losses, from a seed.

mod any_trace;
mod made;

pub use made::{EventKind, Field, Made, Random};
