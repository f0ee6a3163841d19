//! Queries stores written by these tests: with the engine, DuckDB and Spark.

#[path = "../../../../tests/support/seed.rs"]
mod seed;
#[path = "../../../../tests/support/skip.rs"]
mod skip;

mod answers;
mod completeness;
mod equal_answers;
mod errors;
mod functions;
mod memory;
mod pruning;
mod readers;
mod traces;
