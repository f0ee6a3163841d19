//! The arguments of a table function.

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, ObjectName, Value};

use crate::error::QueryError;

/// The time limits of a function call, as SQL expressions.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
}

pub(super) struct Arguments<'a> {
    function: String,
    all: &'a [FunctionArg],
}

impl<'a> Arguments<'a> {
    pub(super) fn of(name: &ObjectName, all: &'a [FunctionArg]) -> Self {
        Self { function: name.to_string().to_lowercase(), all }
    }

    /// An error about wrong arguments, with the correct usage.
    pub(super) fn wrong(&self, what: &str, usage: &str) -> QueryError {
        QueryError::invalid(format!("{}: {what}; write {usage}", self.function))
    }

    pub(super) fn positional(&self) -> Vec<&'a Expr> {
        let expr = |argument: &'a FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        };
        self.all.iter().filter_map(expr).collect()
    }

    /// The values of arguments that must be text literals.
    pub(super) fn texts(&self, arguments: &[&Expr], usage: &str) -> Result<Vec<String>, QueryError> {
        let text = |expr: &Expr| match expr {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let texts = arguments.iter().copied().map(text).collect::<Option<Vec<_>>>();
        texts.ok_or_else(|| self.wrong("names of events and columns are texts in single quotes", usage))
    }

    pub(super) fn times(&self, usage: &str) -> Result<Times, QueryError> {
        let mut times = Times::default();
        for argument in self.all {
            let (name, value) = match argument {
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => (name.to_string(), value),
                FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(value), .. } => (name.to_string(), value),
                FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) => continue,
                other => return Err(self.wrong(&format!("there is no argument `{other}`"), usage)),
            };
            match &*name.to_lowercase() {
                "since" => times.since = Some(value.to_string()),
                "until" => times.until = Some(value.to_string()),
                _ => return Err(self.wrong(&format!("there is no argument `{name}`"), usage)),
            }
        }
        Ok(times)
    }
}
