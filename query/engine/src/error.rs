//! Errors of queries.

use std::error::Error;
use std::fmt;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::object_store;
use datafusion::sql::sqlparser::parser::ParserError;
use tracepoint_tables::TablesError;

/// A position in the text of a query. Line and column count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " at line {}, column {}", self.line, self.column)
    }
}

/// An error of a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The directory or prefix at this path or URL has no readable store, for this reason.
    #[error("{0} is not a store: {1}; `tracectl export --parquet STORE TRACE` makes one")]
    NotAStore(String, String),
    /// The path has neither a store nor a trace, but these contents.
    #[error(
        "{0} is neither a store nor a trace: {1}; name a directory that `tracectl export --parquet` has made, one that holds a \
         file called `metadata`, or one with such directories below it, or a dt file"
    )]
    NeitherStoreNorTrace(String, String),
    /// The query names a table that the store or the trace does not have; with the most similar names.
    #[error("there is no table {0:?}{hint}", hint = hint(.1))]
    UnknownTable(String, Vec<String>),
    /// The query is not valid: the fault, a correction if one is known, and the position.
    #[error("{0}{place}", place = .1.map(|place| place.to_string()).unwrap_or_default())]
    Invalid(String, Option<Position>),
    /// The query exceeds its memory in an operation that cannot spill to disk.
    #[error(
        "the query needs more memory than it may have, for what cannot be spilled to the disk: {0}; allow more by `--memory`"
    )]
    Memory(String),
    /// A trace cannot be opened or read.
    #[error(transparent)]
    Trace(#[from] TablesError),
    /// A file was removed while the query ran.
    #[error("{0} was removed while the query ran, by `compact` or `retain`: repeat the query")]
    Removed(String),
    /// A file cannot be read, or the query failed for another reason.
    #[error("{0}")]
    Failed(String),
}

fn hint(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return "; `tracectl query --tables PATH` lists them".to_owned();
    }
    let names: Vec<_> = nearest.iter().map(|name| format!("\"{name}\"")).collect();
    format!(": did you mean {}? `tracectl query --tables PATH` lists them", names.join(" or "))
}

impl QueryError {
    /// An error in the text of a query.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into(), None)
    }

    /// Converts an error that `DataFusion` returned while planning or running a query.
    pub(crate) fn of(error: &DataFusionError) -> Self {
        let diagnostic = error.diagnostic();
        let start = diagnostic.and_then(|diagnostic| diagnostic.span).map(|span| span.start);
        let position = start.map(|start| Position { line: start.line, column: start.column });
        if let Some(error) = object_error(error) {
            return Self::of_objects(error);
        }
        match error.find_root() {
            DataFusionError::SQL(error, _) => Self::of_parser(error),
            DataFusionError::ResourcesExhausted(message) => Self::Memory(message.clone()),
            DataFusionError::SchemaError(error, _) => {
                let message = match **error {
                    SchemaError::FieldNotFound { .. } => error.to_string().trim_end_matches('.').to_owned(),
                    _ => error.to_string(),
                };
                Self::Invalid(message, position)
            }
            DataFusionError::Plan(message) | DataFusionError::NotImplemented(message) => {
                Self::Invalid(message.clone(), position)
            }
            DataFusionError::External(error) => Self::Failed(error.to_string()),
            root => Self::Failed(root.strip_backtrace()),
        }
    }

    /// Converts an error of the parser, taking the position from its text.
    fn of_parser(error: &ParserError) -> Self {
        let (ParserError::ParserError(text) | ParserError::TokenizerError(text)) = error else {
            return Self::invalid(error.to_string());
        };
        let Some((message, place)) = text.split_once(" at Line: ") else { return Self::invalid(text) };
        let mut numbers = place.split(", Column: ").map(|number| number.trim().parse());
        let position = match (numbers.next(), numbers.next()) {
            (Some(Ok(line)), Some(Ok(column))) => Some(Position { line, column }),
            _ => None,
        };
        let message = if position.is_some() { message } else { text };
        Self::Invalid(message.to_owned(), position)
    }

    pub(crate) fn of_objects(error: &object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { path, .. } => Self::Removed(path.clone()),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Finds the error of the object store that caused an error. It may be wrapped in errors of Parquet and Arrow.
fn object_error(error: &DataFusionError) -> Option<&object_store::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        Self::of(&error)
    }
}

impl From<object_store::Error> for QueryError {
    fn from(error: object_store::Error) -> Self {
        Self::of_objects(&error)
    }
}
