//! The sinks of sessions that are controlled from outside: bounded, so that nobody has to look after them.

mod ctf;
mod file;
mod names;
mod nowhere;
mod space;

pub(super) use ctf::{Chunks, ctf};
pub(super) use file::shared_text;

use super::context::Context;
use crate::session::SessionBuilder;
use crate::spec::SinkSpec;
use nowhere::Nowhere;
use space::Watch;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_sinks::udp::{DropPolicy, UdpOptions, UdpServerSink};
use tracepoint_sinks::{CtfSink, TextSink};

/// How long a server goes on serving its client when the session ends: the agent waits for it.
const FLUSH: Duration = Duration::from_secs(2);

/// What was made for a recording.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    /// Where the traces are.
    pub(super) outputs: Vec<PathBuf>,
    /// Where servers listen.
    pub(super) servers: Vec<SocketAddr>,
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
            builder = self.add(builder, spec, &context.trace_name())?;
        }
        Ok(builder)
    }

    fn add(&mut self, builder: SessionBuilder, spec: &SinkSpec, name: &str) -> Result<SessionBuilder, String> {
        Ok(match spec.kind.as_str() {
            "dt" => {
                space::insist(&spec.path)?;
                let (sink, path) = file::dt(&spec.path, name, spec.dt_slots())?;
                self.outputs.push(path);
                builder.sink(sink)
            }
            "text" if spec.path.as_os_str().is_empty() => builder.sink(TextSink::new(std::io::stderr())),
            "text" => {
                space::insist(&spec.path)?;
                let (file, path) = file::text(&spec.path, name, spec.max_size)?;
                self.watches.push(file.watch());
                self.files.push(path.clone());
                self.outputs.push(path);
                builder.sink(TextSink::new(file))
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
                let sink = UdpServerSink::bind(options).map_err(|error| error.to_string())?;
                self.servers.push(sink.address());
                builder.sink(sink)
            }
            _ => {
                space::insist(&spec.path)?;
                let chunks = Chunks { size: spec.rotate_size, every: spec.rotate_every(), keep: spec.keep };
                let (sink, path) = ctf(&spec.path, name, spec.max_size, &chunks).map_err(|error| error.to_string())?;
                self.watches.push(sink.watch());
                self.directories.push(path.clone());
                self.outputs.push(path);
                builder.sink(sink)
            }
        })
    }

    /// Removes what was made for a recording that did not start: the next try begins where this one did. Where something is in it, it is
    /// worth keeping.
    pub(super) fn remove_unused(self) {
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
    pub(super) fn notices(&self) -> impl Iterator<Item = String> {
        self.watches.iter().flat_map(|watch| watch.notices())
    }
}
