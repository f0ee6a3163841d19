//! Writes traces into a store of Parquet files, and keeps that in order.
//!
//! [`ingest`] writes a trace: a row for each event, in a directory for each day, host, session and kind of event, and tables of what is
//! missing and of the tracer's account. A trace is in the store as a whole or not at all. [`compact`] makes few large files of many small ones,
//! and [`retain`] removes the oldest days. `docs/parquet.md` specifies the layout, and shows how to query it.
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

mod column;
mod column_type;
mod compact;
mod days;
mod error;
mod files;
mod ingest;
mod layout;
mod names;
mod part;
mod retain;
mod rows;
mod store;
mod table;
mod transaction;

pub use compact::{Compacted, compact};
pub use error::StoreError;
pub use ingest::{IngestOptions, Ingested, ingest};
pub use retain::{Retained, Retention, retain};
pub use store::Store;
