//! Tests of the store: Arrow reads back the written rows, which are compared with the reader's events.

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
