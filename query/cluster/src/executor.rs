//! An executor of a cluster.

use std::future::pending;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;
use tokio::time::sleep;

use crate::codec::{Codec, PlanCodec};
use crate::error::ClusterError;
use crate::objects::Objects;
use crate::watch::Watch;
use crate::{HEARTBEAT, MESSAGE, address};

/// Interval at which registration with the scheduler is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Options of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The scheduler, as `HOST:PORT`.
    pub scheduler: String,
    /// The address that other processes connect to. Rows are served on this port, tasks on the next one; with port 0, both ports are free ones.
    pub bind: SocketAddr,
    /// The name or address announced to other processes, if it differs from `bind`.
    pub advertise: Option<String>,
    /// Maximum number of tasks that run at the same time.
    pub tasks: usize,
    /// Memory in bytes for sorting, grouping and joining, shared by all tasks.
    pub memory: u64,
    /// The directory for intermediate results. It must exist.
    pub directory: PathBuf,
}

/// Runs an executor until an interrupt, or until the scheduler stops it. Calls `ready` with the executor's address for rows once the scheduler has
/// registered it.
///
/// Access is not authenticated: anyone who can connect to its ports can run queries and read the files that it can read.
///
/// # Errors
/// [`ClusterError::Address`], [`ClusterError::Bind`], [`ClusterError::NoScheduler`].
pub async fn run_executor(options: ExecutorOptions, ready: impl FnOnce(SocketAddr) + Send) -> Result<(), ClusterError> {
    let (scheduler_host, scheduler_port) = address::split(&options.scheduler)?;
    Watch::new(&options.scheduler).reach().await?;
    let [port, grpc_port] = ports(options.bind)?;
    let directory = options.directory.display().to_string();
    let temporary = directory.clone();
    let config = ExecutorProcessConfig {
        bind_host: options.bind.ip().to_string(),
        external_host: Some(options.advertise.unwrap_or_else(|| host(options.bind.ip()))),
        port,
        grpc_port,
        scheduler_host,
        scheduler_port,
        scheduler_connect_timeout_seconds: 0,
        vcores: options.tasks.max(1),
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(directory),
        grpc_max_decoding_message_size: MESSAGE,
        grpc_max_encoding_message_size: MESSAGE,
        executor_heartbeat_interval_seconds: HEARTBEAT.as_secs(),
        memory_pool_size: Some(options.memory),
        override_logical_codec: Some(Arc::new(Codec::default())),
        override_physical_codec: Some(Arc::new(PlanCodec::default())),
        override_runtime_producer: Some(Arc::new(move |_: &SessionConfig| {
            let builder = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Objects::default()));
            builder.with_temp_file_path(temporary.clone()).build_arc()
        })),
        ..ExecutorProcessConfig::default()
    };
    let (health, address) = (config.health.clone(), SocketAddr::new(options.bind.ip(), port));
    let registered = async move {
        while !health.is_ready() {
            sleep(LOOK).await;
        }
        ready(address);
        pending().await
    };
    let failed = |error: ballista_core::error::BallistaError| ClusterError::of(&options.scheduler, &error.to_string());
    tokio::select! {
        ended = start_executor_process(Arc::new(config)) => ended.map_err(failed),
        never = registered => never,
    }
}

/// Formats an address as the host part of a URL.
fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// Returns the ports for rows and for tasks. Free ports are found by listening on them briefly, because the scheduler needs them before the servers
/// start.
fn ports(bind: SocketAddr) -> Result<[u16; 2], ClusterError> {
    let failed =
        |address: SocketAddr| move |error: std::io::Error| ClusterError::Bind(address.to_string(), error.to_string());
    let next = if bind.port() == 0 { 0 } else { bind.port().saturating_add(1) };
    let addresses = [bind, SocketAddr::new(bind.ip(), next)];
    let mut found = Vec::new();
    for address in addresses {
        found.push(TcpListener::bind(address).map_err(failed(address))?);
    }
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port()).map_err(failed(bind));
    Ok([port(&found[0])?, port(&found[1])?])
}
