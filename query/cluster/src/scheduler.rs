//! The scheduler of a cluster.

use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::utils::{default_config_producer, default_session_builder};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use crate::codec::{Codec, PlanCodec};
use crate::error::ClusterError;
use crate::objects::Objects;
use crate::{EXECUTOR_TIMEOUT, MESSAGE};

/// Interval, in seconds, at which a scheduler looks for dead executors.
const LOOK: u64 = 1;
/// Maximum attempts of a task and of a stage. The second one covers the death of the executor that ran the first.
const ATTEMPTS: usize = 2;

/// Options of a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// The address to listen on; its port may be 0.
    pub bind: SocketAddr,
}

/// Runs a scheduler until an interrupt. Calls `ready` with the address once it listens.
///
/// Access is not authenticated: anyone who can connect can run queries, and so read everything that the executors can read.
///
/// # Errors
/// [`ClusterError::Bind`].
pub async fn run_scheduler(
    options: SchedulerOptions,
    ready: impl FnOnce(SocketAddr) + Send,
) -> Result<(), ClusterError> {
    let bind = |error: std::io::Error| ClusterError::Bind(options.bind.to_string(), error.to_string());
    let listener = TcpListener::bind(options.bind).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let config = SchedulerConfig {
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        external_host: address.ip().to_string(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        // Each task reads separate files, so spread the tasks over the executors.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: EXECUTOR_TIMEOUT.as_secs(),
        no_executors_grace_period_seconds: EXECUTOR_TIMEOUT.as_secs(),
        expire_dead_executor_interval_seconds: LOOK,
        grpc_server_max_decoding_message_size: MESSAGE,
        grpc_server_max_encoding_message_size: MESSAGE,
        grpc_client_max_message_size: MESSAGE,
        task_max_failures: ATTEMPTS,
        override_logical_codec: Some(Arc::new(Codec::default())),
        override_physical_codec: Some(Arc::new(PlanCodec::default())),
        override_session_builder: Some(Arc::new(|config| {
            let runtime =
                RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Objects::default())).build_arc()?;
            Ok(SessionStateBuilder::new_from_existing(default_session_builder(config)?)
                .with_runtime_env(runtime)
                .build())
        })),
        override_config_producer: Some(Arc::new(default_config_producer)),
        ..SchedulerConfig::default()
    };
    let failed = |error: ballista_core::error::BallistaError| ClusterError::Failed(error.to_string());
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    let scheduler =
        create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await.map_err(failed)?;
    ready(address);
    tokio::select! {
        served = start_grpc_service_with_listener(listener, scheduler) => served.map_err(failed),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}
