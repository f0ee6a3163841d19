//! Prunes files, or rows that stand for a time range: finds those that no row can match, by the minima and maxima of columns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

/// Minima and maxima of columns for a number of files or rows. NULL means unknown.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    count: usize,
    columns: HashMap<String, (ArrayRef, ArrayRef)>,
}

impl Ranges {
    pub(crate) fn new(count: usize) -> Self {
        Self { count, columns: HashMap::new() }
    }

    /// Adds the ranges of a column. Values are cast to the column's type in the table.
    pub(crate) fn add(
        &mut self,
        schema: &SchemaRef,
        name: &str,
        values: impl IntoIterator<Item = (ScalarValue, ScalarValue)>,
    ) -> datafusion::common::Result<()> {
        let Ok(field) = schema.field_with_name(name) else { return Ok(()) };
        let (least, greatest): (Vec<_>, Vec<_>) = values.into_iter().unzip();
        let array = |values: Vec<ScalarValue>| -> datafusion::common::Result<ArrayRef> {
            let values = values.into_iter().map(|value| value.cast_to(field.data_type()));
            ScalarValue::iter_to_array(values.collect::<Result<Vec<_>, _>>()?)
        };
        if self.count > 0 {
            self.columns.insert(name.to_owned(), (array(least)?, array(greatest)?));
        }
        Ok(())
    }

    /// Returns for each file or row whether the predicate may be true for it: true for all if ranges cannot decide the predicate.
    pub(crate) fn may_match(&self, predicate: Option<&Arc<dyn PhysicalExpr>>, schema: &SchemaRef) -> Vec<bool> {
        let all = || vec![true; self.count];
        let Some(predicate) = predicate else { return all() };
        let pruning =
            PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema)).try_build(Arc::clone(predicate));
        pruning.and_then(|pruning| pruning.prune(self)).unwrap_or_else(|_| all())
    }
}

impl PruningStatistics for Ranges {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::clone(&self.columns.get(&column.name)?.0))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::clone(&self.columns.get(&column.name)?.1))
    }

    fn num_containers(&self) -> usize {
        self.count
    }

    fn null_counts(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
