//! Queries a store of traces by SQL.
//!
//! [`Engine`] opens a store in the layout of `docs/parquet.md`, in a local directory or any object store, or a trace; `DataFusion` plans and runs the
//! queries. Each event is a table with the event's name; `events` has the columns that all events share, and `account` and `losses` describe missing
//! data. `docs/query.md` describes the tables, the functions for traces, and the memory that a query needs.
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
mod nearest;
mod planner;
mod pruning;
mod stored_file;
mod table;
mod trace;

pub use completeness::Missing;
pub use datafusion::{self, arrow, object_store};
pub use engine::{Answer, Description, Engine, EngineOptions, TableColumns};
pub use error::{Position, QueryError};
pub use trace::TraceExec;
pub use tracepoint_tables::ScanDescription;
