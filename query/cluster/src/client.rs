//! A client of a scheduler.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ballista_core::config::BallistaConfig;
use ballista_core::execution_plans::DistributedQueryExec;
use ballista_core::extension::{
    SessionConfigExt, ballista_aggregate_functions, ballista_scalar_functions, ballista_window_functions,
};
use ballista_core::ids::new_instance_id;
use ballista_core::optimizer::ballista_default_optimizer_rules;
use ballista_core::serde::protobuf::CancelJobParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::LogicalPlanNode;
use futures::future::{BoxFuture, Either, FutureExt, select};
use futures::stream::{Stream, StreamExt, unfold};
use tracepoint_query::QueryError;
use tracepoint_query::distributed::Runner;

use crate::codec::Codec;
use crate::error::ClusterError;
use crate::watch::Watch;
use crate::{MESSAGE, address};

/// Maximum time to wait for the scheduler when a query is cancelled.
const CANCEL: Duration = Duration::from_millis(500);

type Query = Arc<DistributedQueryExec<LogicalPlanNode>>;

/// The client of a scheduler.
///
/// A query starts when its first row is requested, and its rows arrive when all tasks have ended. Until then the client polls the scheduler: the
/// query fails if the scheduler is unreachable, or has no executor, for [`EXECUTOR_TIMEOUT`](crate::EXECUTOR_TIMEOUT).
#[derive(Debug)]
pub struct Cluster {
    watch: Watch,
    tasks: usize,
    /// The query started last.
    query: Mutex<Option<Query>>,
}

impl Cluster {
    /// Connects to the scheduler at `HOST:PORT`. Each stage of a query is divided into at most `tasks` tasks.
    ///
    /// # Errors
    /// [`ClusterError::Address`], [`ClusterError::NoScheduler`]; [`ClusterError::NoExecutor`] if no executor registers within ten seconds.
    pub async fn connect(scheduler: &str, tasks: usize) -> Result<Self, ClusterError> {
        address::split(scheduler)?;
        let watch = Watch::new(scheduler);
        watch.wait_for_executor().await?;
        Ok(Self { watch, tasks, query: Mutex::new(None) })
    }

    fn settings(&self) -> SessionConfig {
        SessionConfig::new_with_ballista()
            .with_target_partitions(self.tasks.max(1))
            .with_ballista_grpc_client_max_message_size(MESSAGE as usize)
    }
}

#[async_trait]
impl Runner for Cluster {
    fn state(&self, runtime: Arc<RuntimeEnv>) -> SessionState {
        SessionStateBuilder::new()
            .with_config(self.settings())
            .with_runtime_env(runtime)
            .with_default_features()
            .with_optimizer_rules(ballista_default_optimizer_rules())
            .with_scalar_functions(ballista_scalar_functions())
            .with_aggregate_functions(ballista_aggregate_functions())
            .with_window_functions(ballista_window_functions())
            .build()
    }

    async fn run(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream, QueryError> {
        let settings = self.settings();
        let config: BallistaConfig = settings.ballista_config();
        let session = new_instance_id();
        let query: Query = Arc::new(DistributedQueryExec::with_extension(
            self.watch.url(),
            config,
            plan,
            Arc::new(Codec::default()),
            session.clone(),
        ));
        let context = TaskContext::default().with_session_config(settings);
        let rows = query.execute(0, Arc::new(context))?;
        *self.query.lock().unwrap_or_else(PoisonError::into_inner) = Some(query);
        let schema = rows.schema();
        let watch = self.watch.clone();
        let scheduler = self.watch.scheduler().to_owned();
        let lost = async move { watch.lost().await }.boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, guarded(rows, lost, scheduler))))
    }

    /// Cancels the last query. If the scheduler cannot be reached, the query runs to its end.
    async fn cancel(&self) {
        let query = self.query.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(job) = query.and_then(|query| query.job_id()) else { return };
        let told = async {
            let mut scheduler = SchedulerGrpcClient::connect(self.watch.url()).await?;
            scheduler.cancel_job(CancelJobParams { job_id: job.to_string() }).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        };
        _ = tokio::time::timeout(CANCEL, told).await;
    }
}

/// Passes rows on until the cluster is lost.
fn guarded(
    rows: SendableRecordBatchStream,
    lost: BoxFuture<'static, ClusterError>,
    scheduler: String,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    unfold(Some((rows, lost, scheduler)), |state| async move {
        let (mut rows, mut lost, scheduler) = state?;
        let next = match select(rows.next(), &mut lost).await {
            Either::Left((next, _)) => next?.map_err(|error| ClusterError::of(&scheduler, &text(&error))),
            Either::Right((error, _)) => Err(error),
        };
        match next {
            Ok(batch) => Some((Ok(batch), Some((rows, lost, scheduler)))),
            Err(error) => Some((Err(DataFusionError::External(error.into())), None)),
        }
    })
}

/// The text of an error, without the prefixes that name its kind.
fn text(error: &DataFusionError) -> String {
    let root = error.find_root();
    match root {
        DataFusionError::Execution(text) => text.clone(),
        root => root.strip_backtrace(),
    }
}
