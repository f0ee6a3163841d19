//! Queries with one correct answer, independent of the engine: `queries/*.sql` in this crate.

use std::fs;
use std::path::Path;

/// A query in the SQL of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The file name without the extension.
    pub name: String,
    /// The text, without the comment.
    pub sql: String,
}

impl Query {
    /// Maximum relative error of an answer: 3 % for estimates, otherwise the rounding error.
    pub fn tolerance(&self) -> f64 {
        if self.name.starts_with("about-") { 0.03 } else { 1e-9 }
    }
}

/// All queries by name. For each, the engine's variant `NAME.ENGINE.sql` is preferred over `NAME.sql`.
///
/// # Panics
/// If a file cannot be read, or its first line is not a comment.
pub fn queries(engine: &str) -> Vec<Query> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries");
    let files = fs::read_dir(&directory).expect("a directory of this crate").filter_map(Result::ok);
    let names = files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".sql").map(str::to_owned));
    let mut names: Vec<_> = names.filter(|name| !name.contains('.')).collect();
    names.sort();
    let query = |name: String| {
        let own = directory.join(format!("{name}.{engine}.sql"));
        let file = if own.exists() { own } else { directory.join(format!("{name}.sql")) };
        let text = fs::read_to_string(&file).expect("a query");
        let (comment, sql) = text.split_once('\n').expect("a comment and a query");
        assert!(comment.starts_with("-- "), "{} has no comment in its first line", file.display());
        Query { name, sql: sql.trim().to_owned() }
    };
    names.into_iter().map(query).collect()
}
