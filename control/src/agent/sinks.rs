//! The sinks of sessions that are controlled from outside: bounded, so that nobody has to look after them.

mod ctf;
mod file;
mod names;
mod nowhere;
mod space;

pub(super) use ctf::{Chunks, ctf};
pub(super) use file::shared_text;
pub(crate) use space::Allowance;

use super::context::Context;
use crate::session::SessionBuilder;
use crate::spec::SinkSpec;
use nowhere::Nowhere;
use space::Watch;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_sinks::udp::{DropPolicy, UdpOptions, UdpSink};
use tracepoint_sinks::{CtfSink, Sink, TextSink};

/// How long a server goes on serving its client when the session ends.
const FLUSH: Duration = Duration::from_secs(2);

/// What was made for a recording.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    /// Where the traces are.
    pub(crate) outputs: Vec<PathBuf>,
    /// Where servers listen.
    pub(crate) servers: Vec<SocketAddr>,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    watches: Vec<Arc<Watch>>,
}

impl Sinks {
    /// Gives a session its sinks; the error is why it cannot have one.
    pub(super) fn add_to(
        &mut self,
        mut builder: SessionBuilder,
        specs: &[SinkSpec],
        context: &Context,
    ) -> Result<SessionBuilder, String> {
        if specs.is_empty() {
            return Ok(builder.sink(Nowhere));
        }
        for spec in specs {
            builder = builder.boxed_sink(self.make(spec, &context.trace_name(), Allowance::of(spec.max_size))?);
        }
        Ok(builder)
    }

    /// Makes a sink for the trace called `name`; the error is why it cannot be had.
    pub(crate) fn make(
        &mut self,
        spec: &SinkSpec,
        name: &str,
        allowance: Arc<Allowance>,
    ) -> Result<Box<dyn Sink>, String> {
        Ok(match spec.kind.as_str() {
            "dt" => {
                space::insist(&spec.path)?;
                let (sink, path) = file::dt(&spec.path, name, spec.dt_slots())?;
                self.outputs.push(path);
                Box::new(sink)
            }
            "text" if spec.path.as_os_str().is_empty() => Box::new(TextSink::stderr()),
            "text" => {
                space::insist(&spec.path)?;
                let (file, path) = file::text(&spec.path, name, allowance)?;
                self.watches.push(file.watch());
                self.files.push(path.clone());
                self.outputs.push(path);
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
                self.servers.push(sink.address());
                Box::new(sink)
            }
            _ => {
                space::insist(&spec.path)?;
                let chunks = Chunks { size: spec.rotate_size, every: spec.rotate_every(), keep: spec.keep };
                let (sink, path) = ctf(&spec.path, name, allowance, &chunks).map_err(|error| error.to_string())?;
                self.watches.push(sink.watch());
                self.directories.push(path.clone());
                self.outputs.push(path);
                Box::new(sink)
            }
        })
    }

    /// Removes what was made for a recording that did not start: the next try begins where this one did. Where something is in it, it is
    /// worth keeping.
    pub(crate) fn remove_unused(self) {
        for directory in self.directories {
            let _ = CtfSink::remove_unused(&directory);
        }
        for file in self.files {
            if file.metadata().is_ok_and(|file| file.len() == 0) {
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// What keeps them from writing now.
    pub(crate) fn notices(&self) -> impl Iterator<Item = String> {
        self.watches.iter().flat_map(|watch| watch.notices())
    }
}
