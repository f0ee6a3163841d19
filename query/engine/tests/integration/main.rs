//! Queries of stores that are written here, by the engine, and by DuckDB and Spark.

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
