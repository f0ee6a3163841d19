//! Serves queries of a store of traces by Arrow Flight SQL, for Python and BI tools.
//!
//! Use this crate directly to serve queries from a program of your own; `tracectl query --serve` is the command.
//!
//! Statements are read-only. A query is planned when a client asks for its columns, and runs when the client fetches the rows. The server keeps no
//! state between the two: a statement's ticket is its text. For the same reason prepared statements take no parameters, and need not be closed.
//!
//! The engine determines which data may be missing from an answer before it sends the first row. The notes are in the metadata of the schema under
//! [`MISSING`], and as the same JSON in the query's `app_metadata`: clients of all languages can read at least one of them.

mod access;
mod answers;
mod error;
mod server;
mod service;
mod stores;

pub use access::Token;
pub use answers::MISSING;
pub use error::ServeError;
pub use server::{ServeOptions, serve};
pub use stores::Opener;
