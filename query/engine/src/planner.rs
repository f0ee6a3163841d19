//! Plans queries: expands the functions for traces, and registers the tables that a query refers to.

use datafusion::common::{DataFusionError, TableReference};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SQLOptions, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use crate::catalog::Catalog;
use crate::error::{Position, QueryError};
use crate::functions;

/// A session of `DataFusion`, and the tables of a store or trace.
pub(crate) struct Planner {
    pub(crate) context: SessionContext,
    pub(crate) catalog: Catalog,
}

impl Planner {
    /// Plans a query. Statements that change data or read other files are refused.
    pub(crate) async fn plan(&self, sql: &str) -> Result<LogicalPlan, QueryError> {
        let state = self.context.state();
        let dialect = state.config_options().sql_parser.dialect;
        let mut statement = state.sql_to_statement(sql, &dialect).map_err(|error| self.explained(sql, &error))?;
        if !is_query(&statement) {
            return Err(QueryError::invalid("only queries are run: SELECT, WITH, VALUES, DESCRIBE and EXPLAIN"));
        }
        functions::expand(&mut statement, &self.catalog)?;
        for reference in state.resolve_table_references(&statement)? {
            if !state.table_functions().contains_key(reference.table()) {
                self.register(&reference).await?;
            }
        }
        let plan = state.statement_to_plan(statement).await?;
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)?;
        Ok(plan)
    }

    async fn register(&self, reference: &TableReference) -> Result<(), QueryError> {
        let name = reference.table();
        let known = TableReference::bare(name);
        if reference.schema().is_none() && self.context.table_exist(known.clone())? {
            return Ok(());
        }
        let state = self.context.state();
        // Tools that list catalogs and schemas qualify table names with them.
        let names = &state.config_options().catalog;
        let is_ours = reference.schema().is_none_or(|schema| schema == names.default_schema)
            && reference.catalog().is_none_or(|catalog| catalog == names.default_catalog);
        let table = if is_ours { self.catalog.table(&state, name).await? } else { None };
        let Some(table) = table else { return Err(self.catalog.unknown(&reference.to_string())) };
        match self.context.register_table(known.clone(), table) {
            // Another query has registered the table meanwhile.
            Err(error) if !self.context.table_exist(known)? => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Explains an error of the parser. The most frequent cause is an event name without quotes, which the parser's message does not mention.
    fn explained(&self, sql: &str, error: &DataFusionError) -> QueryError {
        let QueryError::Invalid(mut message, position) = QueryError::of(error) else { return QueryError::of(error) };
        let is_bare =
            |name: &String| name.contains(':') && sql.contains(&**name) && !sql.contains(&format!("\"{name}\""));
        if let Some(name) = self.catalog.names().iter().find(|name| is_bare(name)) {
            message = format!("{message}; write the names of events in double quotes: \"{name}\"");
        }
        // The parser reports no position for the end of the text.
        QueryError::Invalid(message, position.or(Some(end(sql))))
    }
}

/// Returns whether a statement only reads.
fn is_query(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(statement) => {
            matches!(**statement, SqlStatement::Query(_) | SqlStatement::ExplainTable { .. })
        }
        Statement::Explain(explain) => is_query(&explain.statement),
        _ => false,
    }
}

/// The position after the last character of a text.
fn end(text: &str) -> Position {
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position { line: text.matches('\n').count() as u64 + 1, column: last.chars().count() as u64 + 1 }
}
