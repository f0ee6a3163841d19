//! The tests of the store: what is written is read back by Arrow, and compared with what the reader decodes.

mod read_back;
#[path = "../../../../tests/support/seed.rs"]
mod seed;

mod hostile_names;
mod losses;
mod maintenance;
mod random_schemas;
mod several_traces;
mod transactions;
mod versions;
