//! The measured costs of a chain.

use std::fmt::Write;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::Outcome;

/// Measured costs of a chain, summed over all hosts. Times are processor times.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Events in the store.
    pub events: u64,
    /// Traces, one per host.
    pub traces: u64,
    /// Traced programs, including their work besides firing events.
    pub services_seconds: f64,
    /// `tracectl record`, which takes the packets and sends them.
    pub recorder_seconds: f64,
    /// All NATS servers; 0 without them.
    pub broker_seconds: f64,
    /// All collectors.
    pub collector_seconds: f64,
    /// Writing the store.
    pub store_seconds: f64,
    /// One `DuckDB` query of one kind of event.
    pub query_seconds: f64,
    /// Bytes of the packets that collectors received, without protocol headers.
    pub wire_bytes: u64,
    /// Bytes of the streams in the collected traces.
    pub ctf_bytes: u64,
    /// Bytes of the files in the store.
    pub parquet_bytes: u64,
    /// Number of files in the store.
    pub files: u64,
}

impl Figures {
    /// The figures behind the page, from `figures.json` in this crate.
    ///
    /// # Errors
    /// If the file cannot be parsed.
    pub fn measured() -> Outcome<Self> {
        Ok(serde_json::from_str(include_str!("../../figures.json"))?)
    }

    /// A sum divided by the number of events.
    pub(crate) fn each(&self, of: f64) -> f64 {
        of / self.events as f64
    }

    /// A table of each stage's cost. A dash stands for a stage that was not measured.
    pub fn table(&self) -> String {
        let mut text = "| stage | processor seconds per million events |\n|---|---|\n".to_owned();
        for (stage, seconds) in [
            ("services, which fire the events", self.services_seconds),
            ("`tracectl record`", self.recorder_seconds),
            ("three `nats-server`", self.broker_seconds),
            ("`tracectl collect`", self.collector_seconds),
            ("the store", self.store_seconds),
            ("a query of one kind of event, by DuckDB", self.query_seconds),
        ] {
            let each = format!("{:.3}", self.each(seconds) * 1e6);
            let _ = writeln!(text, "| {stage} | {} |", if seconds > 0.0 { &each } else { "–" });
        }
        text += "\n| | bytes per event |\n|---|---|\n";
        for (what, bytes) in
            [("packets on the wire", self.wire_bytes), ("CTF", self.ctf_bytes), ("Parquet", self.parquet_bytes)]
        {
            let _ = writeln!(text, "| {what} | {:.2} |", self.each(bytes as f64));
        }
        let _ = writeln!(text, "\n{} events of {} hosts in {} files", self.events, self.traces, self.files);
        text
    }
}

/// The processor time of this process, in seconds.
pub(crate) fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
