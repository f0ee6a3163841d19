//! Balances a trace against its account, step by step: from the events that fired to those that can be decoded.
//!
//! The rules, by the letters in [`Check::rule`]:
//!
//! - **A** the account exists and is complete, or is that of a snapshot.
//! - **B** the UUID is the same in account, metadata and every packet.
//! - **C** the process is that of the metadata (`vpid` in its environment), if it has one.
//! - **D** account and metadata have the same channels and events.
//! - **E** per event: fired = recorded + filtered + suppressed + the sum of lost.
//! - **F** per channel: the events' recorded = the streams' recorded.
//! - **G** per channel: the events' lost = the streams' discarded.
//! - **H** per stream: recorded = written + overwritten + sink.
//! - **I** per stream: events decoded from its file = written.
//! - **J** per stream: packets in its file = packets.
//! - **K** per stream: `events_discarded` of its last packet = discarded.
//! - **L** per stream: `events_before` of its last packet + that packet's events = recorded.
//! - **M** per stream: the sum of the jumps of `events_before`, before and between packets = overwritten + sink.
//! - **N** per stream: packet numbers increase.
//! - **O** per event: decoded = recorded if the channel lost nothing after its rings; otherwise decoded is not more, and
//!   the differences of the channel's events add up to overwritten + sink.
//! - **P** per stream: each packet is consistent with itself and the previous one: times are in order, counters do not
//!   decrease.
//! - **Q** the stream files are those named in the account, belong to the streams that it names, and can be read to
//!   their ends.
//! - **R** the chunks of a trace are consecutive: only chunks that the account lists as removed are missing, each begins where
//!   the previous one ended, and all together hold the recorded events.
//! - **S** the metadata matches its checksums, if it has any.
//!
//! For chunks, E, F and G apply to the last one, whose account covers the whole trace; I, J and M to each chunk's own part; O to all
//! together.
//!
//! Files are read packet by packet, on all processors. Only counters are kept.

mod balance;
mod chunks;
mod scan;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::account::{ACCOUNT_PATH, Account};
use crate::directories::stream_files;
use crate::dt::{DtStream, DtTrace};
use crate::error::ReadError;
use crate::merge::Trace;
use crate::metadata::{EnvValue, Metadata};
use crate::parallel::Parallelism;
use crate::stream::StreamReader;
use balance::{Balance, StreamFile};
use chunks::{Part, check_chunks};

/// One rule, applied to one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// The rule's letter.
    pub rule: char,
    /// The subject of the check.
    pub subject: String,
    /// A description of the comparison.
    pub compares: &'static str,
    /// The left side.
    pub left: String,
    /// The right side.
    pub right: String,
    /// True if the sides agree.
    pub pass: bool,
}

impl Check {
    fn new(
        rule: char,
        subject: impl Into<String>,
        compares: &'static str,
        (left, right): (impl ToString, impl ToString),
        pass: bool,
    ) -> Self {
        Self { rule, subject: subject.into(), compares, left: left.to_string(), right: right.to_string(), pass }
    }
}

/// The outcome of [`verify()`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The path that was verified.
    pub path: PathBuf,
    /// All comparisons.
    pub checks: Vec<Check>,
    /// Number of packets without a checksum, whose bytes cannot be verified: the trace is from a version without checksums.
    pub unchecked: u64,
}

impl Report {
    /// True if every check passed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.pass)
    }

    /// Number of traces that are snapshots of sessions that continued.
    pub fn snapshots(&self) -> usize {
        self.checks.iter().filter(|check| check.rule == 'A' && check.left == SNAPSHOT).count()
    }

    /// True if the only failures are missing accounts of traces from other tracers, which write none.
    pub fn has_no_account(&self) -> bool {
        !self.passed() && self.failures().all(|check| check.rule == 'A' && check.left.starts_with(OF_ANOTHER_TRACER))
    }

    /// The checks that did not pass.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.pass)
    }
}

/// Options and progress of reading the files.
struct ReadOptions<'a> {
    parallelism: Parallelism,
    progress: &'a mut dyn FnMut(u64, u64),
}

/// Balances the trace in a directory, all traces in the tree below it, or the trace in a dt file, against their accounts. Uses all processors.
///
/// The report contains all imbalances, and damage of streams. An error means that there was nothing to balance.
///
/// # Errors
/// As [`Trace::open`]; [`ReadError::Account`] or [`ReadError::Io`] if there is an account that cannot be read.
pub fn verify(path: &Path) -> Result<Report, ReadError> {
    verify_with(path, Parallelism::default(), &mut |_, _| {})
}

/// Like [`verify()`], with this many threads; `progress` is called with the bytes of each directory or dt file read so far, and the total.
///
/// # Errors
/// As [`verify()`].
pub fn verify_with(
    path: &Path,
    parallelism: Parallelism,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, ReadError> {
    let trace = Trace::open(path)?;
    let mut reading = ReadOptions { parallelism, progress };
    let mut report = Report { path: path.to_owned(), checks: Vec::new(), unchecked: 0 };
    if let Some(trace) = trace.dt() {
        verify_dt(trace, &mut report, &mut reading)?;
        return Ok(report);
    }
    let mut parts = Vec::new();
    for (directory, metadata) in trace.metadata() {
        parts.extend(verify_directory(directory, metadata, &mut report, &mut reading)?);
    }
    check_chunks(path, parts, &mut report.checks);
    Ok(report)
}

fn verify_directory(
    directory: &Path,
    metadata: &Metadata,
    report: &mut Report,
    reading: &mut ReadOptions<'_>,
) -> Result<Option<Part>, ReadError> {
    let account = Account::find(directory)?;
    report.checks.push(completeness(&directory.join(ACCOUNT_PATH), account.as_ref(), metadata));
    report.checks.extend(unchanged(&directory.join("metadata"), metadata));
    let files = stream_files(directory).map_err(|error| ReadError::io(directory, error))?;
    let file = |path: PathBuf| StreamFile {
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        reader: StreamReader::new(metadata, &path),
        path,
    };
    let files: Vec<_> = files.into_iter().map(file).collect();
    let Some(account) = account else {
        packets_alone(directory, metadata, &files, report, reading);
        return Ok(None);
    };
    let found = Balance::new(directory, metadata, &account, (report, reading)).run(&files);
    Ok(Some(Part { directory: directory.to_owned(), account, found }))
}

/// A dt file has an account from the beginning. The state of an incomplete one differs from that of the slots, so only the packets themselves
/// can be checked.
fn verify_dt(trace: &DtTrace, report: &mut Report, reading: &mut ReadOptions<'_>) -> Result<(), ReadError> {
    let account = trace.account()?;
    report.checks.push(completeness(trace.path(), account.as_ref(), trace.metadata()));
    report.checks.extend(unchanged(&trace.path().join("metadata"), trace.metadata()));
    for damage in trace.damage() {
        let left = format!("byte {}: {}", damage.offset, damage.reason);
        report.checks.push(Check::new('Q', damage.file.display().to_string(), "damage = none", (left, "none"), false));
    }
    let file = |stream: &DtStream| StreamFile {
        name: stream.name.clone(),
        path: trace.path().join(&stream.name),
        reader: StreamReader::of_dt(trace, stream).0,
    };
    let files: Vec<_> = trace.streams().iter().map(file).collect();
    match account {
        Some(account) if account.complete => {
            Balance::new(trace.path(), trace.metadata(), &account, (report, reading)).run(&files);
        }
        _ => packets_alone(trace.path(), trace.metadata(), &files, report, reading),
    }
    Ok(())
}

/// Checks packets that are not covered by an account.
fn packets_alone(
    subject: &Path,
    metadata: &Metadata,
    files: &[StreamFile],
    report: &mut Report,
    reading: &mut ReadOptions<'_>,
) {
    let nothing = Account::new([0; 16], "", 0);
    Balance::new(subject, metadata, &nothing, (report, reading)).packets_alone(files);
}

/// The expected result of rule S.
const AS_WRITTEN: &str = "as it was written";

/// Rule S, if the metadata has checksums.
fn unchanged(subject: &Path, metadata: &Metadata) -> Option<Check> {
    let sides = (metadata.damage().unwrap_or(AS_WRITTEN), AS_WRITTEN);
    let pass = metadata.damage().is_none();
    let compares = "the metadata = as it was written";
    metadata.is_checked().then(|| Check::new('S', subject.display().to_string(), compares, sides, pass))
}

/// The text of rule A for a snapshot.
const SNAPSHOT: &str = "snapshot, the session goes on";

/// The text of rule A for the trace of another tracer.
const OF_ANOTHER_TRACER: &str = "none: the trace is of another tracer";

/// The name of the tracer, if it is not this one.
fn other_tracer(metadata: &Metadata) -> Option<String> {
    match metadata.env_value("tracer_name") {
        Some(EnvValue::String(name)) if name == "tracepoint" => None,
        Some(EnvValue::String(name)) => Some(name.clone()),
        // Unknown.
        _ => None,
    }
}

/// Rule A.
fn completeness(subject: &Path, account: Option<&Account>, metadata: &Metadata) -> Check {
    let found = match (account, other_tracer(metadata)) {
        (Some(account), _) if account.complete => "complete".to_owned(),
        (Some(account), _) if account.snapshot => SNAPSHOT.to_owned(),
        (Some(_), _) => "not complete: the session had not ended when it was written".to_owned(),
        (None, Some(tracer)) => {
            format!("{OF_ANOTHER_TRACER} ({tracer}), which writes none; only the packets themselves were checked")
        }
        (None, None) => {
            "missing: the process ended before writing its account; `tracectl recover` completes the trace of a process from its rings"
                .to_owned()
        }
    };
    let pass = account.is_some_and(|account| account.complete || account.snapshot);
    Check::new('A', subject.display().to_string(), "the account = complete", (found, "complete"), pass)
}
