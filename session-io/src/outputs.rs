//! Creates the sinks in a session's description, each with a limit on the space that it uses.

pub mod ctf;
#[cfg(feature = "dt")]
mod dt;
mod error;
mod file;
mod in_rings;
mod names;
mod space;
#[cfg(feature = "stream")]
mod stream;
#[cfg(feature = "udp")]
mod udp;

pub use ctf::ctf;
pub use error::OutputError;
pub use file::shared_text;
pub use in_rings::InRings;
pub use space::{Allowance, LimitReached};

use crate::sink_features::SinkFeature;
use space::Watch;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::stream_status::StreamStatus;
use tracepoint_session_spec::{ExistingTraces, SinkSource, SinkSpec, TextSinkSpec};
use tracepoint_sinks::{
    CtfError, CtfSink, Sink, StreamWatch, TextSink, UdpStats, UdpWatch, dated_directory, remove_traces,
};

/// The output of a sink: its destination, and messages about it.
#[derive(Debug, Default)]
pub struct Output {
    /// Path of its trace.
    pub path: Option<PathBuf>,
    /// Address of its server.
    pub server: Option<SocketAddr>,
    served: Option<UdpWatch>,
    /// The sender, if it streams.
    pub stream: Option<StreamWatch>,
    directory: Option<PathBuf>,
    file: Option<PathBuf>,
    watch: Option<Arc<Watch>>,
}

impl Output {
    /// Removes the files and directories created for a recording that did not start, so that another attempt can create them again. Files
    /// with content stay.
    pub fn remove_unused(self) {
        if let Some(directory) = self.directory {
            let _ = CtfSink::remove_unused(&directory);
        }
        if let Some(file) = self.file.filter(|file| file.metadata().is_ok_and(|file| file.len() == 0)) {
            let _ = std::fs::remove_file(file);
        }
    }

    /// Returns the status of its stream, if it streams.
    pub fn stream_status(&self) -> Option<StreamStatus> {
        self.stream.as_ref().map(StreamStatus::of)
    }

    /// Returns the address of its server and the counters of sent packets, if it has a server.
    pub fn served(&self) -> Option<(SocketAddr, UdpStats)> {
        Some((self.server?, self.served.as_ref()?.stats()))
    }

    /// Returns messages about write errors and freed space.
    pub fn notices(&self) -> impl Iterator<Item = Notice> {
        let trouble = self.stream.as_ref().and_then(|watch| {
            let reason = watch.stats().trouble?;
            Some(Notice::NotConnected { peer: watch.destination().to_owned(), reason })
        });
        self.watch.iter().flat_map(|watch| watch.notices()).chain(trouble)
    }
}

/// Removes earlier traces, or names the directory by the time, as the description requests, and then clears that request. Called when a
/// session starts in code, and by `Controller::create`.
///
/// # Errors
///
/// If the directory contains anything other than traces, or cannot be changed.
pub fn prepare(sink: &mut SinkSpec) -> Result<(), CtfError> {
    let SinkSpec::Ctf(ctf) = sink else { return Ok(()) };
    match ctf.existing.take() {
        Some(ExistingTraces::Replace) => remove_traces(&ctf.path),
        Some(ExistingTraces::Dated) => {
            ctf.path = dated_directory(&ctf.path);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Makes a sink for the trace called `name`.
pub fn make(spec: &SinkSpec, name: &str, allowance: Arc<Allowance>) -> Result<(Box<dyn Sink>, Output), OutputError> {
    if let Some(missing) = SinkFeature::missing(spec) {
        return Err(OutputError::NotBuilt(missing));
    }
    let mut output = Output::default();
    let sink: Box<dyn Sink> = match spec {
        #[cfg(feature = "dt")]
        SinkSpec::Dt(dt) => {
            space::require_space(&dt.path)?;
            let (sink, path) = dt::file(&dt.path, name, dt.packets())?;
            output.path = Some(path);
            Box::new(sink)
        }
        SinkSpec::Text(TextSinkSpec { path: None, .. }) => Box::new(TextSink::stderr()),
        SinkSpec::Text(TextSinkSpec { path: Some(path), .. }) => {
            space::require_space(path)?;
            let (file, path) = file::text(path, name, allowance)?;
            output.watch = Some(file.watch());
            (output.file, output.path) = (Some(path.clone()), Some(path));
            Box::new(TextSink::new(file))
        }
        #[cfg(feature = "udp")]
        SinkSpec::Udp(udp) => {
            let sink = udp::server(udp).map_err(OutputError::sink)?;
            (output.server, output.served) = (Some(sink.address()), Some(sink.watch()));
            Box::new(sink)
        }
        #[cfg(feature = "stream")]
        SinkSpec::Stream(stream) => {
            let sink = stream::sender(&stream.stream, name)?;
            output.stream = Some(sink.watch());
            Box::new(sink)
        }
        SinkSpec::Ctf(spec) => {
            space::require_space(&spec.path)?;
            let (sink, path) = ctf(spec, name, allowance).map_err(OutputError::sink)?;
            output.watch = Some(sink.watch());
            (output.directory, output.path) = (Some(path.clone()), Some(path));
            Box::new(sink)
        }
        _ => return Err(OutputError::Object),
    };
    Ok((sink, output))
}

/// Returns the object, or a sink created from its description for the trace called `name`.
pub fn of_source(source: SinkSource, name: &str) -> Result<(Box<dyn Sink>, Output), OutputError> {
    match source.into_parts() {
        (Some(sink), _) => Ok((sink, Output::default())),
        (None, spec) => make(&spec, name, Allowance::of(spec.max_size())),
    }
}
