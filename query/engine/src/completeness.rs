//! What may be missing in an answer: losses, and accounts that are not final, in the times and partitions that a query reads.
//!
//! A loss is a row with a range of times. It counts if the filters of a table could be true of an event in that range, as a file is read if
//! they could be true of one of its rows: the decision is the same code. So it follows filters of any form.

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
use losses::Lost;
use rows::Rows;

/// A table of events that a query reads, and the filters on it.
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

/// A range of times of a stream or trace, about which something is said.
struct Span {
    /// The first and the last day; NULL: not known.
    days: (ScalarValue, ScalarValue),
    /// The first and the last time; NULL: not known.
    times: (ScalarValue, ScalarValue),
    host: Option<String>,
    session: Option<String>,
    stream: Option<String>,
}

impl Read {
    /// For each range, whether rows in it could be part of what is read.
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

    /// Whether rows of the table may be in the channels in which these events are.
    fn has_any(&self, events: Option<&HashSet<String>>) -> bool {
        match (&self.events, events) {
            (Events::All, _) | (_, None) => true,
            (Events::These(names), Some(events)) => names.iter().any(|name| events.contains(name)),
            (Events::None, _) => false,
        }
    }
}

/// The events of each channel of each trace: by the first two parts of the names of streams.
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

/// What may be missing in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Sentences about it; none if nothing is known to be missing.
    pub notes: Vec<String>,
    /// How many parts of the traces are damaged, of those that the query may have needed.
    pub damage: u64,
}

/// What may be missing in what was read.
pub(crate) async fn missing(planner: &Planner, reads: &[Read]) -> Result<Missing, QueryError> {
    if reads.is_empty() {
        return Ok(Missing::default());
    }
    let channels = channels(planner).await?;
    let lost = Lost::count(planner, reads, &channels).await?;
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
    Ok(Missing { notes: of_losses.into_iter().chain(of_traces).collect(), damage: lost.damage })
}

/// The tables that were read, as text.
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

/// The first and the last time of a range of days.
fn times_of_days(first: Option<i32>, last: Option<i32>) -> (ScalarValue, ScalarValue) {
    (times_of(first).0, times_of(last).1)
}
