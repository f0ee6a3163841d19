//! What was measured of a chain.

use std::fmt::Write;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// Sums over all hosts of what a chain took. Times are those of processors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Events in the store.
    pub events: u64,
    /// Traces, one of each host.
    pub traces: u64,
    /// Of the traced programs, with what they do beside the events.
    pub services_seconds: f64,
    /// Of `tracectl record`, which takes the packets and sends them.
    pub recorder_seconds: f64,
    /// Of all servers of NATS; 0 without them.
    pub broker_seconds: f64,
    /// Of all collectors.
    pub collector_seconds: f64,
    /// Of writing the store.
    pub store_seconds: f64,
    /// Of a query of one kind of event, by `DuckDB`.
    pub query_seconds: f64,
    /// Packets that collectors have taken, without headers of the protocols.
    pub wire_bytes: u64,
    /// Streams of the collected traces.
    pub ctf_bytes: u64,
    /// Files of the store.
    pub parquet_bytes: u64,
    /// How many files that are.
    pub files: u64,
}

impl Figures {
    /// Those of which the page is made, `figures.json` beside this crate.
    ///
    /// # Errors
    /// If the file has not been understood.
    pub fn measured() -> Outcome<Self> {
        Ok(serde_json::from_str(include_str!("../figures.json"))?)
    }

    /// A part of the sums for each event.
    pub(crate) fn each(&self, of: f64) -> f64 {
        of / self.events as f64
    }

    /// A table of what each stage costs; – stands for what was not measured.
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
