//! Queries executed by other processes: the [`Runner`] interface, and the serialisation of a plan's tables.
//!
//! A plan contains the full paths of its files, and the packets of a trace that it reads. Only the client lists stores and searches for packets, so
//! all processes see the same data, and the client's notes about missing data apply to it. Before a plan is sent, each table in it is reduced to the
//! files or packets that it needs.

use std::sync::Arc;

use async_trait::async_trait;
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
use crate::trace::TraceTable;

mod encoding;

pub use crate::trace::{decode_scan, encode_scan};
pub use encoding::{decode_table, encode_table};

/// Runs planned queries in other processes.
#[async_trait]
pub trait Runner: std::fmt::Debug + Send + Sync {
    /// The session state for planning queries, with this runtime environment.
    fn state(&self, runtime: Arc<RuntimeEnv>) -> SessionState;

    /// Runs an optimized plan; [`encode_table`] must be able to encode all of its tables. The rows may arrive in a single stream.
    ///
    /// # Errors
    /// [`QueryError::Failed`], with the remedy; and the errors of the plan.
    async fn run(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream, QueryError>;

    /// Cancels the query started last, if it is still running.
    async fn cancel(&self);
}

/// Returns whether a plan reads tables and can be sent to other processes.
pub(crate) fn is_sent(plan: &LogicalPlan) -> Result<bool, QueryError> {
    let (mut reads, mut can_be_sent) = (false, true);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let is_ours =
                    provider.downcast_ref::<StoreTable>().is_some() || provider.downcast_ref::<TraceTable>().is_some();
                reads |= is_ours;
                can_be_sent &= is_ours;
            }
            // The serialised form of a plan omits the columns of a relation without rows.
            LogicalPlan::EmptyRelation(relation) => can_be_sent &= relation.schema.fields().is_empty(),
            LogicalPlan::Explain(_) | LogicalPlan::DescribeTable(_) => can_be_sent = false,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(reads && can_be_sent)
}

/// Reduces each table of a plan to the files or packets that it needs. Reads the packet headers of a trace.
pub(crate) fn reduced(state: &dyn Session, plan: LogicalPlan) -> Result<LogicalPlan, QueryError> {
    let reduced = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let provider = source_as_provider(&scan.source)?;
        let filters = unnormalize_cols(scan.filters.clone());
        let reduced: Arc<dyn TableProvider> = if let Some(table) = provider.downcast_ref::<StoreTable>() {
            Arc::new(table.reduced(predicate(state, table.schema(), &filters)?.as_ref())?)
        } else if let Some(table) = provider.downcast_ref::<TraceTable>() {
            Arc::new(table.reduced(state, scan.projection.as_ref(), &filters)?)
        } else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        scan.source = provider_as_source(reduced);
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })?;
    Ok(reduced.data)
}
