//! Table functions for traces. Calls are expanded into the queries that they stand for before planning.
//!
//! The optimizer therefore sees the tables, and prunes files and columns as in any other query.

mod arguments;
mod latency;
mod lost;

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, Query, Statement as SqlStatement, TableAlias, TableFactor, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::catalog::Catalog;
use crate::error::QueryError;
use arguments::Arguments;

/// Replaces calls of `latency` and `lost` by queries.
pub(crate) fn expand(statement: &mut Statement, catalog: &Catalog) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => match statement.visit(&mut Expander { catalog }) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        },
        Statement::Explain(explain) => expand(&mut explain.statement, catalog),
        _ => Ok(()),
    }
}

struct Expander<'a> {
    catalog: &'a Catalog,
}

impl Expander<'_> {
    /// Expands a call into its query; `None` if the function is not one of ours.
    fn query(&self, name: &ObjectName, arguments: &Arguments) -> Result<Option<String>, QueryError> {
        match &*name.to_string().to_lowercase() {
            latency::NAME => latency::query(arguments, self.catalog).map(Some),
            lost::NAME => lost::query(arguments, self.catalog).map(Some),
            _ => Ok(None),
        }
    }

    fn expanded(&self, factor: &TableFactor) -> Result<Option<TableFactor>, QueryError> {
        let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return Ok(None) };
        let Some(text) = self.query(name, &Arguments::of(name, &args.args))? else { return Ok(None) };
        let name = TableAlias {
            explicit: true,
            name: Ident::new(name.to_string().to_lowercase()),
            columns: Vec::new(),
            at: None,
        };
        let alias = Some(alias.clone().unwrap_or(name));
        Ok(Some(TableFactor::Derived { lateral: false, subquery: parsed(&text)?, alias, sample: None }))
    }
}

impl VisitorMut for Expander<'_> {
    type Break = QueryError;

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<QueryError> {
        match self.expanded(factor) {
            Ok(Some(expanded)) => *factor = expanded,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// Parses the text of an expansion.
fn parsed(text: &str) -> Result<Box<Query>, QueryError> {
    let statements = Parser::parse_sql(&GenericDialect {}, text);
    match statements.map(|statements| statements.into_iter().next()) {
        Ok(Some(SqlStatement::Query(query))) => Ok(query),
        Ok(_) => Err(QueryError::invalid("a function of traces has no query")),
        Err(error) => Err(QueryError::invalid(error.to_string())),
    }
}

/// Formats a name as an SQL identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Formats a text as an SQL literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
