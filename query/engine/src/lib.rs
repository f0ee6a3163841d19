//! Queries a store of traces by SQL.
//!
//! [`Engine`] opens a store in the layout of `docs/parquet.md`, in a local directory or any object store, or a trace; `DataFusion` plans and runs the
//! queries. Each event is a table with the event's name; `events` has the columns that all events share, and `account` and `losses` describe missing
//! data. `docs/query.md` describes the tables, the functions for traces, and the memory that a query needs.
//!
//! Use this crate directly to query from a program of your own; `tracectl query` is the command.
//!
//! The way of a query: `catalog` lists the tables of the store or trace, once for all queries. `planner` expands the functions for traces
//! (`functions`) and registers the tables that the query names. A `table` of a store selects files by their partitions and by the minima and maxima
//! of their columns (`pruning`); a table of a `trace` selects packets by their times and streams, and scans them (`tracepoint_tables`). `DataFusion`
//! runs the plan here, or a `distributed::Runner` runs it elsewhere. `completeness` then finds the losses that concern what was read.
//!
//! ```no_run
//! use tracepoint_query::{Engine, EngineOptions};
//!
//! # async fn print() -> Result<(), tracepoint_query::QueryError> {
//! let engine = Engine::open("/srv/traces".as_ref(), EngineOptions::default()).await?;
//! let mut answer = engine.query(r#"SELECT path, count(*) FROM "shop:answered" GROUP BY path"#).await?;
//! while let Some(rows) = answer.next().await? {
//!     println!("{} rows", rows.num_rows());
//! }
//! for note in engine.missing(&answer).await?.notes {
//!     eprintln!("note: {note}");
//! }
//! # Ok(())
//! # }
//! ```

mod catalog;
mod completeness;
pub mod distributed;
mod engine;
mod error;
mod functions;
mod planner;
mod pruning;
mod stored_file;
mod table;
mod trace;

pub use completeness::MissingData;
pub use datafusion::{self, arrow, object_store};
pub use engine::{Answer, Description, Engine, EngineOptions, TableColumns};
pub use error::{Position, QueryError};
pub use trace::TraceExec;
pub use tracepoint_tables::ScanDescription;
