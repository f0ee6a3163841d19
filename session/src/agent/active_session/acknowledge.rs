//! Writes the acknowledgement of a session: the results in this process.

use super::ActiveSession;
use crate::session::Recording;
use std::collections::BTreeMap;
use tracepoint_run_dir::ack::{AckState, Counters, files};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};
use tracepoint_session_io::outputs::Output;
use tracepoint_sinks::SinkReport;
use tracepoint_sinks::account::{Chunk, RemovedChunks};

/// The acknowledged state of a recording that has not ended in time.
const BLOCKED: &str = "recording has stopped, but a sink is slow or blocked and has not written everything yet; the trace \
                       is complete when it has";

impl ActiveSession {
    /// Writes the acknowledgement, with the counters of the events recorded so far.
    pub(in crate::agent) fn acknowledge(
        &mut self,
        sessions: &PrivateDir,
        dir: &PrivateDir,
        entry: &str,
    ) -> Result<(), DirError> {
        let mut blocked = None;
        if let Some(recording) = &self.recording {
            self.ack.state_dumps = recording.state_dumps();
            match recording.status_in_time() {
                Ok(status) => self.last_status = status,
                Err(error) => blocked = Some(Notice::CountersOutOfDate { reason: error.to_string() }),
            }
        }
        self.ack.ring_memory = self.recording.as_ref().map_or(0, Recording::ring_memory);
        (self.ack.statistics, self.ack.statistic_memory) = (self.statistics.len(), self.statistics.memory());
        self.ack.overflowed = self.recording.as_ref().map_or(0, Recording::overflowed);
        let mut channels = self.ended_channels.clone();
        self.ack.counters = self.ended_counters.clone();
        for status in self.endings.iter().map(|(_, last_status)| last_status).chain([&self.last_status]) {
            if let Some(account) = status.account() {
                self.ack.counters.add_account(account, status.bytes());
                channels.add_account(account);
            }
        }
        self.ack.channels = channels.into_map();
        let outputs = || self.recording.iter().flat_map(Recording::outputs);
        self.ack.streams = outputs().filter_map(Output::stream_status).collect();
        let has_blocked_sink = self.is_ending() && self.recording.is_some();
        self.ack.notices = (self.notices.iter().cloned())
            .chain(blocked)
            .chain(outputs().flat_map(Output::notices))
            .chain(has_blocked_sink.then_some(Notice::SinkBlocked))
            .chain(self.removed_chunks())
            .chain(self.recording.as_ref().and_then(Recording::ring_shortage))
            .collect();
        let error = self.errors.error().or(self.end_error.as_ref()).map(String::as_str);
        let is_ending = self.is_ending() && self.recording.is_none();
        self.ack.error = error.or_else(|| is_ending.then_some(BLOCKED)).map(str::to_owned);
        self.ack.state = match self.errors.error() {
            _ if self.recording.is_some() && self.ack.events > 0 || self.statistics.len() > 0 => AckState::Recording,
            _ if is_ending => AckState::Ending,
            Some(_) => AckState::Refused,
            None if self.recording.is_none() && self.ack.counters != Counters::default() => AckState::Ended,
            None => AckState::Waiting,
        };
        files::put(sessions, &self.name, dir, entry, &self.ack)
    }

    /// Adds the number of times that each event of the current recording fired.
    pub(in crate::agent) fn count_fired(&self, fired: &mut BTreeMap<String, u64>) {
        let channels = self.last_status.account().into_iter().flat_map(|account| &account.channels);
        for event in channels.flat_map(|channel| &channel.events) {
            let most = fired.entry(event.name.clone()).or_default();
            *most = (*most).max(event.fired);
        }
    }

    /// Reports the chunks that were removed from traces of limited size. The events before a sink was added count as one of its chunks,
    /// without bytes.
    fn removed_chunks(&self) -> impl Iterator<Item = Notice> {
        let chunks = self.last_status.sinks.iter().filter_map(|sink| Some((sink, sink.account.chunk.as_ref()?)));
        let removed = chunks.filter(|(_, chunk)| chunk.removed.bytes > 0);
        let describe = |(sink, chunk): (&SinkReport, &Chunk)| {
            let RemovedChunks { chunks, events, bytes, .. } = chunk.removed;
            Notice::ChunksRemoved { sink: sink.name.clone(), chunks, events, bytes }
        };
        removed.map(describe)
    }
}
