//! Generates traces for tests from a seed: any schema, with losses.
//!
//! Not published: used by the tests of stores and queries.

mod any_trace;
mod made;

pub use made::{EventKind, Field, Made, Random};
