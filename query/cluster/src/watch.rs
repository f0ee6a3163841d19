//! Whether a scheduler can be reached and has executors: by its page `/readyz`.

use std::time::Duration;

use reqwest::{Client, StatusCode};
use tokio::time::{Instant, sleep};

use crate::EXECUTOR_TIMEOUT;
use crate::error::ClusterError;

/// How long a first executor is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the scheduler is asked, and how long for an answer is waited.
const INTERVAL: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(5);

/// A scheduler that is asked.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    scheduler: String,
    client: Client,
}

impl Watch {
    pub(crate) fn new(scheduler: &str) -> Self {
        // The environment has no say in connections within a cluster: a proxy is for those to other hosts.
        let client = Client::builder().no_proxy().timeout(ANSWER).build().unwrap_or_default();
        Self { scheduler: scheduler.to_owned(), client }
    }

    pub(crate) fn scheduler(&self) -> &str {
        &self.scheduler
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.scheduler)
    }

    /// Whether the scheduler has an executor now.
    async fn has_executor(&self) -> Result<bool, ClusterError> {
        let no_scheduler = |reason: String| ClusterError::NoScheduler { scheduler: self.scheduler.clone(), reason };
        let answer = self.client.get(format!("{}/readyz", self.url())).send().await;
        match answer.map_err(|error| no_scheduler(root(&error)))?.status() {
            StatusCode::OK => Ok(true),
            StatusCode::SERVICE_UNAVAILABLE => Ok(false),
            other => Err(no_scheduler(format!("what is there answers {other}"))),
        }
    }

    /// Checks that there is a scheduler, with executors or without.
    pub(crate) async fn reach(&self) -> Result<(), ClusterError> {
        self.has_executor().await.map(|_| ())
    }

    /// Waits until the scheduler has an executor, for a while.
    pub(crate) async fn wait_for_executor(&self) -> Result<(), ClusterError> {
        let end = Instant::now() + PATIENCE;
        while !self.has_executor().await? {
            if Instant::now() > end {
                return Err(ClusterError::NoExecutor { scheduler: self.scheduler.clone() });
            }
            sleep(INTERVAL / 5).await;
        }
        Ok(())
    }

    /// Ends when there was no scheduler or executor for [`EXECUTOR_TIMEOUT`]: why.
    pub(crate) async fn lost(&self) -> ClusterError {
        let mut last_seen = Instant::now();
        loop {
            sleep(INTERVAL).await;
            let error = match self.has_executor().await {
                Ok(true) => {
                    last_seen = Instant::now();
                    continue;
                }
                Ok(false) => ClusterError::NoExecutor { scheduler: self.scheduler.clone() },
                Err(error) => error,
            };
            if last_seen.elapsed() > EXECUTOR_TIMEOUT {
                return error;
            }
        }
    }
}

/// The innermost reason of an error, which says most.
fn root(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
