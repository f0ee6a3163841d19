//! Polls a scheduler's page `/readyz`: whether it is reachable, and has executors.

use std::time::Duration;

use reqwest::{Client, StatusCode};
use tokio::time::{Instant, sleep};

use crate::EXECUTOR_TIMEOUT;
use crate::error::ClusterError;

/// Maximum time to wait for the first executor.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between requests, and the timeout of one.
const INTERVAL: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(5);

/// A scheduler that is polled.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    scheduler: String,
    client: Client,
}

impl Watch {
    pub(crate) fn new(scheduler: &str) -> Self {
        // Proxy settings in the environment are for other hosts, not for connections within a cluster.
        let client = Client::builder().no_proxy().timeout(ANSWER).build().unwrap_or_default();
        Self { scheduler: scheduler.to_owned(), client }
    }

    pub(crate) fn scheduler(&self) -> &str {
        &self.scheduler
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.scheduler)
    }

    /// Returns whether the scheduler has an executor now.
    async fn has_executor(&self) -> Result<bool, ClusterError> {
        let no_scheduler = |reason: String| ClusterError::NoScheduler(self.scheduler.clone(), reason);
        let answer = self.client.get(format!("{}/readyz", self.url())).send().await;
        match answer.map_err(|error| no_scheduler(root(&error)))?.status() {
            StatusCode::OK => Ok(true),
            StatusCode::SERVICE_UNAVAILABLE => Ok(false),
            other => Err(no_scheduler(format!("what is there answers {other}"))),
        }
    }

    /// Checks that the scheduler can be reached, with or without executors.
    pub(crate) async fn reach(&self) -> Result<(), ClusterError> {
        self.has_executor().await.map(|_| ())
    }

    /// Waits until the scheduler has an executor, for up to [`PATIENCE`].
    pub(crate) async fn wait_for_executor(&self) -> Result<(), ClusterError> {
        let end = Instant::now() + PATIENCE;
        while !self.has_executor().await? {
            if Instant::now() > end {
                return Err(ClusterError::NoExecutor(self.scheduler.clone()));
            }
            sleep(INTERVAL / 5).await;
        }
        Ok(())
    }

    /// Waits until scheduler or executors have been missing for [`EXECUTOR_TIMEOUT`], and returns the error.
    pub(crate) async fn lost(&self) -> ClusterError {
        let mut last_seen = Instant::now();
        loop {
            sleep(INTERVAL).await;
            let error = match self.has_executor().await {
                Ok(true) => {
                    last_seen = Instant::now();
                    continue;
                }
                Ok(false) => ClusterError::NoExecutor(self.scheduler.clone()),
                Err(error) => error,
            };
            if last_seen.elapsed() > EXECUTOR_TIMEOUT {
                return error;
            }
        }
    }
}

/// The innermost source of an error, which is the most specific.
fn root(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
