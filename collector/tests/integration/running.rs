//! A collector that runs in a thread of the test.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracepoint_collector::{Addresses, Collector, Counts, Options, Report};

/// A deadline that a working collector does not come near.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    stop: Arc<AtomicBool>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<Counts>>,
    messages: Vec<String>,
}

impl Running {
    /// Starts a collector on free ports.
    pub(crate) fn below(output: &Path) -> Self {
        Self::with(Options::new(output))
    }

    pub(crate) fn with(options: Options) -> Self {
        let any = "127.0.0.1:0".parse().expect("an address");
        let options = Options { control: any, data: any, live: any, ..options };
        let collector = Collector::bind(options).expect("a collector");
        let addresses = collector.addresses();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (sender, reports) = channel();
        let run = move || {
            let report = |report: &Report| {
                // The test may have stopped listening.
                let _ = sender.send(report.clone());
                !stopped.load(Ordering::Relaxed)
            };
            collector.run(report).expect("a collector that runs")
        };
        Self { addresses, stop, reports, thread: Some(std::thread::spawn(run)), messages: Vec::new() }
    }

    /// Waits until a report fits.
    pub(crate) fn until(&mut self, fits: impl Fn(&Report) -> bool) -> Report {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let report = self.reports.recv_timeout(left);
            let report = report.unwrap_or_else(|_| panic!("nothing fits; messages: {:#?}", self.messages));
            self.messages.extend(report.messages.iter().cloned());
            if fits(&report) {
                return report;
            }
        }
    }

    /// Ends the collector. Returns the counts and all messages.
    pub(crate) fn end(mut self) -> (Counts, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let counts = self.thread.take().expect("a thread").join().expect("no panic");
        self.messages.extend(self.reports.try_iter().flat_map(|report| report.messages));
        (counts, std::mem::take(&mut self.messages))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
