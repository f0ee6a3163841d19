//! The sinks that a session's description names: each is made from its [`SinkSpec`], with a bound on what it writes.

mod ctf;
mod file;
mod in_rings;
mod names;
mod space;

pub(crate) use ctf::{Chunks, ctf};
pub(crate) use file::shared_text;
pub(crate) use in_rings::InRings;
pub(crate) use space::Allowance;

use crate::spec::SinkSpec;
use space::Watch;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_sinks::udp::{DropPolicy, UdpOptions, UdpSink};
use tracepoint_sinks::{CtfSink, Sink, TextSink};

/// How long a server goes on serving its client when the session ends.
const FLUSH: Duration = Duration::from_secs(2);

/// What a sink writes to, and how it fares there.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Where its trace is.
    pub(crate) path: Option<PathBuf>,
    /// Where its server listens.
    pub(crate) server: Option<SocketAddr>,
    directory: Option<PathBuf>,
    file: Option<PathBuf>,
    watch: Option<Arc<Watch>>,
}

impl Output {
    /// Removes what was made for a recording that did not start, so that the next attempt finds what this one found. What has content
    /// stays.
    pub(crate) fn remove_unused(self) {
        if let Some(directory) = self.directory {
            let _ = CtfSink::remove_unused(&directory);
        }
        if let Some(file) = self.file.filter(|file| file.metadata().is_ok_and(|file| file.len() == 0)) {
            let _ = std::fs::remove_file(file);
        }
    }

    /// What keeps it from writing now.
    pub(crate) fn notices(&self) -> impl Iterator<Item = String> {
        self.watch.iter().flat_map(|watch| watch.notices())
    }
}

/// Makes a sink for the trace called `name`; the error says why it cannot be made.
pub(crate) fn make(spec: &SinkSpec, name: &str, allowance: Arc<Allowance>) -> Result<(Box<dyn Sink>, Output), String> {
    let mut output = Output::default();
    let sink: Box<dyn Sink> = match spec.kind.as_str() {
        "dt" => {
            space::insist(&spec.path)?;
            let (sink, path) = file::dt(&spec.path, name, spec.dt_slots())?;
            output.path = Some(path);
            Box::new(sink)
        }
        "text" if spec.path.as_os_str().is_empty() => Box::new(TextSink::stderr()),
        "text" => {
            space::insist(&spec.path)?;
            let (file, path) = file::text(&spec.path, name, allowance)?;
            output.watch = Some(file.watch());
            (output.file, output.path) = (Some(path.clone()), Some(path));
            Box::new(TextSink::new(file))
        }
        "udp" => {
            let drops = match spec.drop.as_deref() {
                Some("newest") => DropPolicy::Newest,
                _ => DropPolicy::Oldest,
            };
            let mut options = UdpOptions::default().address(spec.socket_address()).drops(drops).flush(FLUSH);
            if let Some(limit) = spec.limit {
                options = options.limit(usize::try_from(limit).unwrap_or(usize::MAX));
            }
            let sink = UdpSink::bind(options).map_err(|error| error.to_string())?;
            output.server = Some(sink.address());
            Box::new(sink)
        }
        "ctf" => {
            space::insist(&spec.path)?;
            let chunks = Chunks { size: spec.rotate_size, every: spec.rotate_every(), keep: spec.keep };
            let (sink, path) = ctf(&spec.path, name, allowance, &chunks).map_err(|error| error.to_string())?;
            output.watch = Some(sink.watch());
            (output.directory, output.path) = (Some(path.clone()), Some(path));
            Box::new(sink)
        }
        kind => return Err(format!("a sink of the kind `{kind}` cannot be made from a description")),
    };
    Ok((sink, output))
}
