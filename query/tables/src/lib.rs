//! The tables of a trace in Arrow format: a row for each event, the losses, and the account.
//!
//! Only this crate knows the columns of a trace, and where their values are. A store writes the rows to Parquet; a query of a trace reads them from
//! the packets. `docs/parquet.md` specifies the tables.
//!
//! Use this crate directly to read traces as Arrow batches; to query them, use `tracepoint-query`.

//!
//! [`TraceTables`] opens a trace as tables. A [`ScanDescription`] selects the data to read, and divides it into partitions. [`Scan`] reads a
//! partition, also in another process that has the description and access to the same files.

mod accounts;
mod column;
mod column_type;
pub mod days;
mod description;
mod error;
mod layout;
pub mod names;
mod naming;
mod place;
mod records;
mod rows;
mod scan;
mod streams;
mod survey;
mod trace_tables;

pub use accounts::{AccountPart, GivenTwice, StreamCounts, TableNames, account_rows, identities, last_day};
pub use description::{BytePath, Run, ScanDescription, Selection};
pub use error::TablesError;
pub use layout::{EventOrigin, Layout, time_type};
pub use naming::Names;
pub use place::HostSession;
pub use records::{AccountRow, LossRow, Row};
pub use rows::{RowHead, RowOrigin, Rows};
pub use scan::{Scan, ScanCounts, ScanStep};
pub use streams::StreamState;
pub use trace_tables::{TableStream, TraceTables};
