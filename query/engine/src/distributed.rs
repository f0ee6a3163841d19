//! Queries that other processes run: who runs them, and the tables of a plan as bytes.
//!
//! A plan names its files itself, with their places in full. So nothing but the client lists a store: all processes see the same files, and
//! what the client says is missing is about these. Before a plan is sent, each table in it is reduced to the files that it needs.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;

use crate::error::QueryError;
use crate::table::{StoreTable, predicate};

mod encoding;

pub use encoding::{decode_table, encode_table};

/// Runs planned queries in other processes.
#[async_trait]
pub trait Runner: std::fmt::Debug + Send + Sync {
    /// The state by which queries are planned, with this environment.
    fn state(&self, runtime: Arc<RuntimeEnv>) -> SessionState;

    /// Runs an optimized plan, all of whose tables [`encode_table`] can encode. The rows may come from one stream only.
    ///
    /// # Errors
    /// [`QueryError::Failed`], with what mends it; and those of the plan.
    async fn run(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream, QueryError>;

    /// Ends the query that was begun last, if it runs.
    async fn cancel(&self);
}

/// Whether a plan reads tables of a store, and is one that can be sent.
pub(crate) fn is_sent(plan: &LogicalPlan) -> Result<bool, QueryError> {
    let (mut reads, mut can_be_sent) = (false, true);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let is_of_store = provider.downcast_ref::<StoreTable>().is_some();
                reads |= is_of_store;
                can_be_sent &= is_of_store;
            }
            // The encoding of plans has no columns of a relation without rows.
            LogicalPlan::EmptyRelation(relation) => can_be_sent &= relation.schema.fields().is_empty(),
            LogicalPlan::Explain(_) | LogicalPlan::DescribeTable(_) => can_be_sent = false,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(reads && can_be_sent)
}

/// The same plan, whose tables have only the files that it needs.
pub(crate) fn reduced(state: &dyn Session, plan: LogicalPlan) -> Result<LogicalPlan, QueryError> {
    let reduced = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let provider = source_as_provider(&scan.source)?;
        let Some(table) = provider.downcast_ref::<StoreTable>() else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        let predicate = predicate(state, table.schema(), &unnormalize_cols(scan.filters.clone()))?;
        scan.source = provider_as_source(Arc::new(table.reduced(predicate.as_ref())?));
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })?;
    Ok(reduced.data)
}

/// The same columns, without views of texts and bytes: batches that go from process to process carry the buffers of views as a whole.
pub(crate) fn without_views(schema: &SchemaRef) -> SchemaRef {
    let plain = |field: &FieldRef| match field.data_type() {
        DataType::Utf8View => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        DataType::BinaryView => Arc::new(field.as_ref().clone().with_data_type(DataType::Binary)),
        _ => Arc::clone(field),
    };
    let fields: Fields = schema.fields().iter().map(plain).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
