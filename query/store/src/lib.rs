//! Writes traces into a store of Parquet files, and maintains the store.
//!
//! [`ingest`] writes a trace: a row for each event, in a directory for each day, host, session and kind of event; and tables of missing data and of
//! the tracer's account. A trace is stored completely or not at all. [`compact`] merges small files into few large ones, and [`retain`] removes the
//! oldest days. A store is a local directory, or a prefix in S3. `docs/parquet.md` specifies the layout, and has examples of queries.
//!
//! Use this crate directly to write stores from a program of your own; `tracectl export --parquet` is the command.
//!
//! ```no_run
//! use tracepoint_reader::Trace;
//! use tracepoint_store::{IngestOptions, Store, ingest};
//!
//! let trace = Trace::open("/tmp/trace".as_ref())?;
//! let store = Store::create("/tmp/store".as_ref())?;
//! let stored = ingest(&store, &trace, IngestOptions::default(), &mut |_, _| {})?;
//! println!("{} events in {} bytes", stored.events, stored.bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod compact;
mod error;
mod files;
mod ingest;
mod local;
mod object;
mod part;
mod plan;
mod retain;
mod store;
mod table;

pub use backend::Objects;
pub use compact::{CompactionSummary, compact};
pub use error::StoreError;
pub use ingest::{IngestOptions, IngestSummary, ingest};
pub use object::bucket;
pub use plan::{Retention, RetentionSummary};
pub use retain::retain;
pub use store::Store;
