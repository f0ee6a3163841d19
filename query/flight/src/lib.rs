//! Serves queries of a store of traces by Arrow Flight SQL, for Python and BI tools.
//!
//! Statements only read. A query is planned when a client asks for its columns, and runs when it fetches the rows; nothing is kept between the two,
//! because the ticket of a statement is its text. So prepared statements have no parameters, and are forgotten by nobody.
//!
//! What may be missing in an answer is found out before its first row is sent. It is in the metadata of the schema, as [`MISSING`], and the
//! same JSON is the `app_metadata` of the description of the query: clients of all languages see the one or the other.

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
