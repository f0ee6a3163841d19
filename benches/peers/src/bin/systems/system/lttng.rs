//! LTTng-UST, controlled by its command line: a session with a default channel.

use super::Recording;
use crate::processes::Pid;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use tracepoint_peers::peer::lttng_session::lttng;

const EVENT: &str = "peers_session:discard_numbers";

/// Checks that there is a session daemon.
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
        named("lttng-")
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

/// The processes whose names begin with `prefix`.
fn named(prefix: &str) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let pid = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        if let Some(pid) = pid.filter(|_| has_name(&path, prefix)) {
            found.push(pid);
        }
    }
    Ok(found)
}

fn has_name(process: &Path, prefix: &str) -> bool {
    fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with(prefix))
}
