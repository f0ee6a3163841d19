//! The plan node that reads rows of a trace.
//!
//! Its [`ScanDescription`] describes a [`TraceExec`] completely: serialise it on one host by `TraceExec::description().to_bytes()`, and create the
//! node on another host, with the trace at the same path, by `TraceExec::new(ScanDescription::from_bytes(…))`. The node opens the trace when its
//! first partition is executed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use tokio::sync::mpsc::Sender;
use tracepoint_tables::{Scan, ScanDescription, ScanStep, Selection, TablesError, TraceTables};

/// Number of batches read ahead of the consumer.
const AHEAD: usize = 2;

/// Reads the rows that a description selects.
///
/// Metrics: `packets_read`, packets read; `records`, records in them; `packets_pruned`, packets skipped by the plan; `damaged`, parts that cannot be
/// read.
pub struct TraceExec {
    description: Arc<ScanDescription>,
    /// The trace, once it is open.
    tables: Arc<Mutex<Option<Arc<TraceTables>>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TraceExec {
    /// Creates a node for a description. The trace is opened when the first partition is executed.
    pub fn new(description: ScanDescription) -> Self {
        let partitions = Partitioning::UnknownPartitioning(description.partitions.len());
        let equivalences = EquivalenceProperties::new(Arc::clone(&description.schema));
        let (emission, bounded) = (EmissionType::Incremental, Boundedness::Bounded);
        let properties = Arc::new(PlanProperties::new(equivalences, partitions, emission, bounded));
        let (description, tables) = (Arc::new(description), Arc::default());
        Self { description, tables, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// Creates a node for an open trace; its plan skips `pruned` packets.
    pub(super) fn planned(description: ScanDescription, tables: Arc<TraceTables>, pruned: usize) -> Self {
        let plan = Self { tables: Arc::new(Mutex::new(Some(tables))), ..Self::new(description) };
        MetricBuilder::new(&plan.metrics).global_counter("packets_pruned").add(pruned);
        plan
    }

    /// The description of the scan.
    pub fn description(&self) -> &ScanDescription {
        &self.description
    }
}

/// Opens the trace, unless it is open.
fn opened(
    tables: &Mutex<Option<Arc<TraceTables>>>,
    description: &ScanDescription,
) -> Result<Arc<TraceTables>, TablesError> {
    let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tables) = &*tables {
        return Ok(Arc::clone(tables));
    }
    let opened = Arc::new(TraceTables::of(description)?);
    Ok(Arc::clone(tables.insert(opened)))
}

/// Metrics of reading a partition.
struct Counters {
    baseline: BaselineMetrics,
    packets: Count,
    records: Count,
    damaged: Count,
}

impl Counters {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        let baseline = BaselineMetrics::new(metrics, partition);
        Self { baseline, packets: counter("packets_read"), records: counter("records"), damaged: counter("damaged") }
    }

    /// Reads a partition until its consumer stops. This blocks.
    fn read(&self, scan: &mut Scan, rows: &Sender<datafusion::common::Result<RecordBatch>>) -> Result<(), TablesError> {
        let mut before = scan.counts();
        while !rows.is_closed() {
            let timer = self.baseline.elapsed_compute().timer();
            let step = scan.step();
            timer.done();
            let counts = scan.counts();
            self.packets.add((counts.packets - before.packets) as usize);
            self.records.add((counts.records - before.records) as usize);
            self.damaged.add(scan.take_damage().len());
            before = counts;
            match step? {
                ScanStep::Rows(batch) => {
                    self.baseline.record_output(batch.num_rows());
                    if rows.blocking_send(Ok(batch)).is_err() {
                        break;
                    }
                }
                ScanStep::Packet => {}
                ScanStep::End => break,
            }
        }
        self.baseline.done();
        Ok(())
    }
}

impl fmt::Debug for TraceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceExec").field("description", &self.description).finish_non_exhaustive()
    }
}

impl DisplayAs for TraceExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanDescription { selection, schema, partitions, limit, times, .. } = &*self.description;
        let what = match selection {
            Selection::Losses => "losses".to_owned(),
            Selection::Account => "account".to_owned(),
            events => match events.tables() {
                tables @ ([] | [_] | [_, _] | [_, _, _]) => format!("[{}]", tables.join(", ")),
                [first, second, rest @ ..] => format!("[{first}, {second} and {} more]", rest.len()),
            },
        };
        if format == DisplayFormatType::TreeRender {
            return write!(f, "{what}");
        }
        let path = self.description.path().display();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let packets: usize = partitions.iter().flatten().map(|run| run.packets.len()).sum();
        write!(f, "TraceExec: path={path}, events={what}, projection=[{}]", columns.join(", "))?;
        write!(f, ", packets={packets} in {} partitions", partitions.len())?;
        if let Some(since) = times.start {
            write!(f, ", since={since}")?;
        }
        if let Some(until) = times.end {
            write!(f, ", until={until}")?;
        }
        limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for TraceExec {
    fn name(&self) -> &'static str {
        "TraceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> datafusion::common::Result<TreeNodeRecursion>,
    ) -> datafusion::common::Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan of a trace has no children") }
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> datafusion::common::Result<SendableRecordBatchStream> {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.description.schema), AHEAD);
        let (rows, counters) = (stream.tx(), Counters::new(&self.metrics, partition));
        let (tables, description) = (Arc::clone(&self.tables), Arc::clone(&self.description));
        stream.spawn_blocking(move || {
            let external = |error: TablesError| DataFusionError::External(Box::new(error));
            let tables = opened(&tables, &description).map_err(external)?;
            let mut scan = Scan::new(tables, description, partition);
            counters.read(&mut scan, &rows).map_err(external)
        });
        Ok(stream.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn fetch(&self) -> Option<usize> {
        self.description.limit
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let mut description = ScanDescription::clone(&self.description);
        description.limit = limit;
        let same = Self::new(description);
        Some(Arc::new(Self { tables: Arc::clone(&self.tables), metrics: self.metrics.clone(), ..same }))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }
}
