//! LTTng-UST, by its command line: a session with a default channel.

use super::Recording;
use crate::processes::{self, Pid};
use anyhow::{Context, Result};
use std::path::Path;
use tracepoint_peers::peer::lttng_session::lttng;

const EVENT: &str = "peers_session:discard_numbers";

/// Whether there is a session daemon.
pub(super) fn check() -> Result<()> {
    lttng(&["list"])?;
    Ok(())
}

/// A session.
pub(super) struct Session {
    name: String,
    stopped: bool,
}

impl Session {
    pub(super) fn start(output: &Path) -> Result<Self> {
        let name = format!("tracepoint-peers-{}", std::process::id());
        lttng(&["create", &name, &format!("--output={}", output.display())])?;
        let session = Self { name, stopped: false };
        lttng(&["enable-event", "-u", &format!("--session={}", session.name), EVENT])?;
        lttng(&["start", &session.name])?;
        Ok(session)
    }
}

impl Recording for Session {
    fn consumers(&self) -> Result<Vec<Pid>> {
        processes::named("lttng-")
    }

    fn stop(&mut self) -> Result<Option<u64>> {
        lttng(&["stop", &self.name])?;
        let text = lttng(&["list", &self.name])?;
        let lost = text.lines().find_map(|line| line.trim().strip_prefix("Discarded events:"));
        let lost = lost.context("lttng list has the discarded events")?.trim().parse()?;
        self.stopped = true;
        lttng(&["destroy", &self.name])?;
        Ok(Some(lost))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = lttng(&["destroy", &self.name]);
        }
    }
}
