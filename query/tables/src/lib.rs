//! The tables of a trace, in Arrow: a row for each event, what is missing, and the account.
//!
//! This is the only place that knows which columns a trace has and where their values are. A store writes the rows into Parquet, and queries of a trace
//! read them from its packets. `docs/parquet.md` specifies the tables.

//!
//! [`TraceTables`] opens a trace as tables. A [`ScanDescription`] says what is read of it, in which partitions; [`Scan`] reads a partition, also in another process
//! that has the description and sees the same files.

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
