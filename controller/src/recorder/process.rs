//! One recorded process.

use super::RecordedProcess;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::ack::Counters;
use tracepoint_run_dir::bandwidth::Buckets;
use tracepoint_run_dir::own_process::trace_name;
use tracepoint_run_dir::rights::Rights;
use tracepoint_run_dir::session_dir::{RemoteDir, RemoteRingDirs};
use tracepoint_run_dir::stream_status::{STREAMS, StreamStatus};
use tracepoint_session_io::outputs::{self, Allowance, LimitReached};
use tracepoint_session_spec::SinkSpec;
use tracepoint_sinks::{Drain, Output, RemoteConsumer, RemoteRings, SinkReport};

/// One process: its directory, its drain, and its outputs.
#[derive(Debug)]
pub(super) struct RemoteProcess {
    pub(super) key: ProcessKey,
    dir: RemoteDir,
    stamp: (u64, u64),
    drain: Drain<RemoteRings>,
    outputs: Vec<outputs::Output>,
    name: String,
    notes: Vec<String>,
    /// The reason why a ring file could not be opened in the last round, if one could not.
    unopened: Option<String>,
    /// The time of the last write of the streaming sinks' progress.
    streams_written: Option<Instant>,
}

/// The interval between two such writes: the maximum age of the stored acknowledgements after the recorder was killed.
const STREAMS_PAUSE: Duration = Duration::from_millis(500);

impl RemoteProcess {
    /// Creates the sinks and the drain.
    pub(super) fn attach(
        dir: RemoteDir,
        specs: (&[SinkSpec], Option<&Buckets>),
        allowance: &Arc<Allowance>,
        rights: &Rights,
    ) -> Result<Self, AttachError> {
        let mut outputs = Vec::new();
        let attached = attach(&dir, specs, (allowance, rights), &mut outputs);
        match attached {
            Ok((key, stamp, drain)) => {
                let name = drain.trace().process.name.clone();
                let (notes, unopened, streams_written) = (Vec::new(), None, None);
                Ok(Self { key, dir, stamp, drain, outputs, name, notes, unopened, streams_written })
            }
            Err(error) => {
                rights.as_self(|| outputs.drain(..).for_each(outputs::Output::remove_unused));
                Err(error)
            }
        }
    }

    pub(super) fn directory(&self) -> &str {
        self.dir.name()
    }

    pub(super) fn has_ended(&self) -> bool {
        !self.dir.is_recorded_into()
    }

    /// Drains the closed packets; returns their number, and the fill level of the fullest ring in percent.
    pub(super) fn take(&mut self, rights: &Rights) -> (u64, u32) {
        let flushed = self.dir.flushed();
        self.unopened = add_rings(&self.dir, &mut self.drain);
        // Read before the rings. A ring that cannot be opened may contain older packets.
        if let Some(time) = flushed.filter(|_| self.unopened.is_none()) {
            self.drain.set_flushed(time);
        }
        let fullness = self.drain.look();
        // Read after the rings: the metadata then describes every packet closed by then.
        if let Err(reason) = self.update_metadata(rights) {
            let note = format!("the metadata of process {}: {reason}", self.key);
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let packets = rights.as_self(|| self.drain.drain()).packets;
        if self.streams_written.is_none_or(|written| written.elapsed() >= STREAMS_PAUSE) {
            self.write_streams();
        }
        (packets, fullness)
    }

    fn streams(&self) -> Vec<StreamStatus> {
        self.outputs.iter().filter_map(outputs::Output::stream_status).collect()
    }

    /// Writes it to a file for `status` and for recovery. Without space, the last version stays.
    fn write_streams(&mut self) {
        let streams = self.streams();
        if !streams.is_empty() {
            self.streams_written = Some(Instant::now());
            let _ = serde_json::to_vec(&streams).map(|text| self.dir.put_file(STREAMS, &text));
        }
    }

    fn update_metadata(&mut self, rights: &Rights) -> Result<(), String> {
        let stamp = self.dir.metadata_stamp().map_err(|error| error.to_string())?;
        if stamp == self.stamp {
            return Ok(());
        }
        let text = self.dir.metadata().map_err(|error| error.to_string())?;
        self.stamp = stamp;
        rights.as_self(|| self.drain.describe(text)).map_err(|error| error.to_string())
    }

    /// Returns whether finishing its sinks may block on clients of a server, or on a peer.
    pub(super) fn may_block_at_end(&self) -> bool {
        self.outputs.iter().any(|output| output.server.is_some() || output.stream.is_some())
    }

    /// Returns the maximum number of its open files: its rings, its directory, and in each output a directory and a file.
    pub(super) fn files(&self) -> usize {
        self.drain.files() + 1 + 2 * self.outputs.len()
    }

    /// Closes its files until the next access, as far as its sinks support that.
    pub(super) fn close_files(&mut self) {
        self.dir.close();
        self.drain.close_files();
    }

    pub(super) fn progress(&self) -> RecordedProcess {
        RecordedProcess {
            process: Some(self.key),
            name: self.name.clone(),
            outputs: self.outputs.iter().filter_map(|output| output.path.clone()).collect(),
            servers: self.outputs.iter().filter_map(|output| output.server).collect(),
            streams: self.streams(),
            bytes: self.drain.bytes(),
            notices: self.outputs.iter().flat_map(outputs::Output::notices).collect(),
            ..RecordedProcess::default()
        }
    }

    /// Drains the remaining packets and finishes the sinks. Unless the process still `runs`, its directory is removed; it is kept if
    /// something could not be read.
    pub(super) fn end(mut self, runs: bool, rings: Option<&RemoteRingDirs>, rights: &Rights) -> RecordedProcess {
        self.take(rights);
        let progress = self.progress();
        let Self { dir, drain, notes, unopened, outputs, .. } = self;
        let (reports, mut damage) = rights.as_self(|| drain.end(runs));
        damage.extend(notes.into_iter().chain(unopened));
        let complete = damage.is_empty() && reports.iter().all(|report| report.account.complete);
        if runs {
            dir.give_up();
        } else if let Some(rings) = rings.filter(|_| complete) {
            rings.remove(&dir);
        }
        let bytes = reports.iter().map(|report| report.bytes).sum();
        let counters = SinkReport::of_most(&reports).map(|report| {
            let mut counters = Counters::default();
            counters.add_account(&report.account, bytes);
            counters
        });
        let errors = reports.iter().filter_map(error).collect();
        let is_full = reports.iter().any(has_reached_limit);
        RecordedProcess {
            bytes,
            counters,
            complete,
            notes: damage,
            errors,
            is_full,
            served: outputs.iter().filter_map(outputs::Output::served).collect(),
            servers: Vec::new(),
            streams: Vec::new(),
            notices: Vec::new(),
            ..progress
        }
    }
}

/// The rings of a process cannot be drained, for this reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct AttachError(String);

impl AttachError {
    fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

type Attached = (ProcessKey, (u64, u64), Drain<RemoteRings>);

fn attach(
    dir: &RemoteDir,
    (specs, buckets): (&[SinkSpec], Option<&Buckets>),
    (allowance, rights): (&Arc<Allowance>, &Rights),
    made: &mut Vec<outputs::Output>,
) -> Result<Attached, AttachError> {
    let key = ProcessKey::of_directory(dir.name())
        .ok_or_else(|| AttachError::new("the directory's name is not that of a process"))?;
    let unreadable =
        |error: io::Error| AttachError::new(format_args!("the metadata of process {key} cannot be read: {error}"));
    let stamp = dir.metadata_stamp().map_err(unreadable)?;
    let consumer = RemoteConsumer::new(dir.metadata().map_err(unreadable)?).map_err(AttachError::new)?;
    // The sinks are created last because their names contain the program's name.
    let mut drain = Drain::remote(consumer).map_err(AttachError::new)?;
    if let Some(time) = dir.flushed() {
        drain.set_flushed(time);
    }
    add_rings(dir, &mut drain);
    let name = trace_name(&drain.trace().process.name, dir.name());
    let (mut sinks, mut lines) = (Vec::new(), Vec::new());
    for spec in specs {
        let (mut sink, output) =
            rights.as_self(|| outputs::make(spec, &name, Arc::clone(allowance))).map_err(AttachError::new)?;
        made.push(output);
        if let Some(buckets) = buckets {
            buckets.apply(&mut *sink);
        }
        lines.extend(sink.extension().and_then(|sink| sink.output()).map(line));
        sinks.push(sink);
    }
    // Written before the first packet is released, because recovery reads it to find packets already written.
    dir.put_outputs(&lines.concat()).map_err(|error| {
        AttachError::new(format_args!("the outputs of process {key} cannot be written down: {error}"))
    })?;
    let added = rights.as_self(|| sinks.into_iter().try_for_each(|sink| drain.add_sink(sink).map(drop)));
    added.map_err(AttachError::new)?;
    Ok((key, stamp, drain))
}

/// Adds new rings to the drain; returns the reason why one of them cannot be opened, if so.
fn add_rings(dir: &RemoteDir, drain: &mut Drain<RemoteRings>) -> Option<String> {
    let mut unopened = None;
    for name in dir.rings() {
        if drain.has_ring(&name) {
            continue;
        }
        // A file that cannot be opened, or is not a complete ring yet, is retried in the next round.
        match dir.ring(&name) {
            Ok((path, file)) => drop(drain.add_ring(&name, &path, file)),
            Err(error) => unopened = Some(format!("the ring {name} cannot be opened: {error}")),
        }
    }
    unopened
}

/// Returns the line that describes an output for recovery.
fn line(output: Output) -> Vec<u8> {
    let Output { format, path } = output;
    [format.as_bytes(), b" ", path.as_os_str().as_bytes(), b"\n"].concat()
}

/// Returns whether a sink has refused packets because the recording has reached its maximum size, which is a regular end.
fn has_reached_limit(report: &SinkReport) -> bool {
    report.error.as_ref().is_some_and(LimitReached::is_reason_of)
}

fn error(report: &SinkReport) -> Option<String> {
    let SinkReport { name, refused, error, .. } = report;
    let error = error.as_ref().filter(|error| !LimitReached::is_reason_of(error))?;
    Some(if *refused > 0 {
        format!("{name}: {error}; {refused} packets were not written")
    } else {
        format!("{name}: {error}")
    })
}
