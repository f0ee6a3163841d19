//! The tests of the store: what is written is read back by Arrow, and compared with what the reader decodes.

#[path = "../common/made.rs"]
mod made;
mod read_back;
#[path = "../../../../tests/support/seed.rs"]
mod seed;

mod any_trace;
mod hostile_names;
mod losses;
mod maintenance;
mod random_schemas;
mod several_traces;
mod transactions;
mod versions;
