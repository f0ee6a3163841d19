//! Shared by the tests of sinks: a recording without a session.

#![allow(dead_code, reason = "every test uses its part of this")]

#[path = "../../../tests/support/describe.rs"]
mod describe;

#[path = "../../../tests/support/relayd.rs"]
pub(crate) mod relayd;

use describe::describe;
use std::panic::Location;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint_sinks::{ClockInfo, Drain, ProcessInfo, Sink, SinkReport, TraceInfo};

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A temporary directory.
pub(crate) fn place() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// For tests that record the markers of one file: events are recorded process-wide, so these tests run one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A channel of 16 packets of 4 KiB for each thread.
pub(crate) fn channel() -> Channel {
    Channel::discard(64 << 10).packets(16).overflow(0)
}

/// A recording of the markers of a file.
pub(crate) struct Recording {
    pub(crate) drain: Drain,
    channel: Arc<OpenChannel>,
    subscriptions: Vec<Subscription>,
}

impl Recording {
    /// Records the markers declared in the caller's file.
    #[track_caller]
    pub(crate) fn start(config: Channel, sinks: Vec<Box<dyn Sink>>) -> Result<Self, Box<dyn std::error::Error>> {
        let file = Location::caller().file();
        let uuid = *b"0123456789abcdef";
        let mut markers: Vec<_> =
            tracepoint::runtime::markers().filter(|marker| marker.location().file == file).collect();
        markers.sort_by_key(|marker| marker.full_name());
        let channel = OpenChannel::open(config, uuid, 0, markers.len(), Box::new(AnonymousMemory))?;
        let process = ProcessInfo {
            pid: std::process::id(),
            name: "the \"program\"".to_owned(),
            executable: "/bin/program".to_owned(),
            hostname: "host".to_owned(),
            ..ProcessInfo::default()
        };
        let clock = ClockInfo { uuid: Some([7; 16]), offset: 1_700_000_000_000_000_000 };
        let trace = TraceInfo { uuid, name: "test".to_owned(), clock, process };
        let mut drain = Drain::new(trace, vec![Arc::clone(&channel)]);
        for sink in sinks {
            drain.add_sink(sink)?;
        }
        let mut subscriptions = Vec::new();
        for marker in markers {
            let id = channel.add_event()?;
            drain.describe(&[describe(marker, 0, id.get())])?;
            subscriptions.push(marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches"));
        }
        Ok(Self { drain, channel, subscriptions })
    }

    pub(crate) fn finish(self) -> Vec<SinkReport> {
        Subscription::end_all(self.subscriptions);
        let reports = self.drain.finish();
        self.channel.close();
        reports
    }
}

/// The output of babeltrace2 for the trace in `dir`, and its warnings.
pub(crate) fn view(dir: &Path) -> (String, String) {
    let output =
        Command::new("babeltrace2").arg(dir).output().expect("babeltrace2 is installed (see scripts/setup.sh)");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let warnings = text(&output.stderr);
    assert!(output.status.success(), "babeltrace2 failed: {warnings}");
    (text(&output.stdout), warnings)
}

/// Checks that the account of the trace in `dir` balances.
pub(crate) fn assert_balances(dir: &Path) {
    let report = tracepoint_reader::verify(dir).expect("a trace with an account");
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(report.unchecked, 0, "each packet has a checksum");
}

/// A text output that the test can read.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    /// Returns everything written.
    pub(crate) fn text(&self) -> String {
        self.0.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Returns everything written, as lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().map_err(|_| std::io::ErrorKind::Other)?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
