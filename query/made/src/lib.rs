//! Generates traces for tests from a seed: any schema, with losses.

mod any_trace;
mod made;

pub use made::{EventKind, Field, Made, Random};
