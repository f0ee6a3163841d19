//! Determines what may be missing from an answer: losses, and accounts that are not final, within the times and partitions that a query reads.
//!
//! A loss is a row with a time range. It counts if a table's filters could be true for an event within the range. Files are pruned by the same code:
//! a file is read if the filters could be true for one of its rows. So filters of any form are supported.

mod losses;
mod rows;
mod traces;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::physical_expr::PhysicalExpr;

use crate::error::QueryError;
use crate::planner::Planner;
use crate::pruning::Ranges;
use crate::table::{Events, StoreTable, predicate, times_of};
use crate::trace::TraceTable;
use losses::LossCounts;
use rows::Rows;

/// A table of events that a query reads, with its filters.
pub(crate) struct Read {
    /// The name of the table.
    table: String,
    events: Events,
    schema: SchemaRef,
    predicate: Option<Arc<dyn PhysicalExpr>>,
}

/// The tables of events that an optimized plan reads.
pub(crate) fn reads(state: &dyn Session, plan: &LogicalPlan) -> Result<Vec<Read>, QueryError> {
    let mut reads = Vec::new();
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        let provider = source_as_provider(&scan.source)?;
        let store = provider.downcast_ref::<StoreTable>().map(StoreTable::events);
        let trace = provider.downcast_ref::<TraceTable>().map(TraceTable::events);
        let Some(events) = store.or(trace) else { return Ok(TreeNodeRecursion::Continue) };
        if *events != Events::None {
            let filters = unnormalize_cols(scan.filters.clone());
            reads.push(Read {
                table: scan.table_name.table().to_owned(),
                events: events.clone(),
                schema: provider.schema(),
                predicate: predicate(state, provider.schema(), &filters)?,
            });
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(reads)
}

/// A time range of a stream or trace, together with its place.
struct Span {
    /// The first and last day; NULL if unknown.
    days: (ScalarValue, ScalarValue),
    /// The first and last time; NULL if unknown.
    times: (ScalarValue, ScalarValue),
    host: Option<String>,
    session: Option<String>,
    stream: Option<String>,
}

impl Read {
    /// Returns for each range whether it could contain rows that this table scan reads.
    fn may_match(&self, spans: &[Span]) -> datafusion::common::Result<Vec<bool>> {
        let mut ranges = Ranges::new(spans.len());
        let text = |text: Option<&str>| {
            let text = ScalarValue::from(text);
            (text.clone(), text)
        };
        ranges.add(&self.schema, "day", spans.iter().map(|span| span.days.clone()))?;
        ranges.add(&self.schema, "ts", spans.iter().map(|span| span.times.clone()))?;
        ranges.add(&self.schema, "host", spans.iter().map(|span| text(span.host.as_deref())))?;
        ranges.add(&self.schema, "session", spans.iter().map(|span| text(span.session.as_deref())))?;
        ranges.add(&self.schema, "stream", spans.iter().map(|span| text(span.stream.as_deref())))?;
        Ok(ranges.may_match(self.predicate.as_ref(), &self.schema))
    }

    /// Returns whether channels with these events may contain rows of the table.
    fn has_any(&self, events: Option<&HashSet<String>>) -> bool {
        match (&self.events, events) {
            (Events::All, _) | (_, None) => true,
            (Events::These(names), Some(events)) => names.iter().any(|name| events.contains(name)),
            (Events::None, _) => false,
        }
    }
}

/// The events in each channel of each trace. Keys are the first two parts of stream names.
type Channels = HashMap<String, HashSet<String>>;

async fn channels(planner: &Planner) -> Result<Channels, QueryError> {
    let sql = "SELECT DISTINCT coalesce(trace, '-') || '/' || CAST(channel AS VARCHAR) AS channel, name
        FROM account WHERE scope = 'event' AND channel IS NOT NULL AND name IS NOT NULL";
    let (mut rows, mut found) = (Rows::of(planner, sql).await?, Channels::new());
    while let Some(batch) = rows.next().await? {
        for row in 0..batch.len() {
            if let (Some(channel), Some(name)) = (batch.text("channel", row), batch.text("name", row)) {
                found.entry(channel).or_default().insert(name);
            }
        }
    }
    Ok(found)
}

/// Data that may be missing from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingData {
    /// A sentence for each kind of missing data; empty if no data is known to be missing.
    pub notes: Vec<String>,
    /// Number of damaged parts in the traces that the query may have needed.
    pub damage: u64,
}

/// Determines what may be missing from the tables read.
pub(crate) async fn missing(planner: &Planner, reads: &[Read]) -> Result<MissingData, QueryError> {
    if reads.is_empty() {
        return Ok(MissingData::default());
    }
    let channels = channels(planner).await?;
    let lost = LossCounts::count(planner, reads, &channels).await?;
    let open = traces::not_final(planner, reads, &channels).await?;
    let tables = tables(reads);
    let of_losses = lost.sentence(&tables);
    let of_traces = (open > 0).then(|| {
        let traces = if open == 1 { "1 trace".to_owned() } else { format!("{open} traces") };
        format!(
            "the counts of {traces} of this time are not final, so that more events of {tables} may be missing: see `complete` in the \
             table account"
        )
    });
    Ok(MissingData { notes: of_losses.into_iter().chain(of_traces).collect(), damage: lost.damage })
}

/// Formats the names of the tables read.
fn tables(reads: &[Read]) -> String {
    let mut names: Vec<_> = reads.iter().map(|read| read.table.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let quoted = |name: &&str| format!("\"{name}\"");
    match &names[..] {
        [first, second, _, ..] => format!("{}, {} and others", quoted(first), quoted(second)),
        names => names.iter().map(quoted).collect::<Vec<_>>().join(" and "),
    }
}

/// The first and last time within a range of days.
fn times_of_days(first: Option<i32>, last: Option<i32>) -> (ScalarValue, ScalarValue) {
    (times_of(first).0, times_of(last).1)
}
