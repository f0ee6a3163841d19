//! Writes the acknowledgement of a session: the results in this process.

use super::SessionFollower;
use crate::session::{Recording, Status};
use std::collections::BTreeMap;
use std::path::Path;
use tracepoint_run_dir::ack::{AckState, Counters, files};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};
use tracepoint_session_io::outputs::Output;
use tracepoint_sinks::account::{Chunk, RemovedChunks};
use tracepoint_sinks::{SinkError, SinkReport};

/// The acknowledged state of a recording that has not ended in time.
const BLOCKED: &str = "recording has stopped, but a sink is slow or blocked and has not written everything yet; the trace \
                       is complete when it has";

impl SessionFollower {
    /// Writes the acknowledgement, with the counters of the events recorded so far.
    pub(in crate::agent) fn acknowledge(
        &mut self,
        sessions: &PrivateDir,
        dir: &PrivateDir,
        entry: &str,
    ) -> Result<(), DirError> {
        let Self { session, ack, .. } = self;
        let out_of_date = |error: SinkError| Notice::CountersOutOfDate(error.to_string());
        let blocked = session.update_status().err().map(out_of_date);
        let (recording, ended, statistics) = (session.recording.as_ref(), &session.ended, &session.statistics);
        let outputs = || recording.into_iter().flat_map(Recording::outputs);
        ack.events = session.events;
        ack.rings = recording.and_then(Recording::ring_dir).map(Path::to_owned);
        ack.servers = outputs().filter_map(|output| output.server).collect();
        // Traces of removed sinks stay listed.
        for path in outputs().filter_map(|output| output.path.as_ref()) {
            if !ack.outputs.contains(path) {
                ack.outputs.push(path.clone());
            }
        }
        ack.state_dumps = session.state_dumps();
        ack.ring_memory = recording.map_or(0, Recording::ring_memory);
        (ack.statistics, ack.statistic_memory) = (statistics.len(), statistics.memory());
        ack.overflowed = recording.map_or(0, Recording::overflowed);
        ack.counters = ended.counters.clone();
        let mut channels = ended.channels.clone();
        for status in ended.pending.iter().map(|(_, last_status)| last_status).chain([&session.last_status]) {
            if let Some(account) = status.account() {
                ack.counters.add_account(account, status.bytes());
                channels.add_account(account);
            }
        }
        ack.channels = channels.into_map();
        ack.streams = outputs().filter_map(Output::stream_status).collect();
        let is_ending = !ended.pending.is_empty();
        ack.notices = (self.notices.iter().cloned())
            .chain(blocked)
            .chain(outputs().flat_map(Output::notices))
            .chain((is_ending && recording.is_some()).then_some(Notice::SinkBlocked))
            .chain(removed_chunks(&session.last_status))
            .chain(recording.and_then(Recording::ring_shortage))
            .collect();
        let is_ending = is_ending && recording.is_none();
        let error = self.errors.error().or(ended.error.as_ref()).map(String::as_str);
        ack.error = error.or_else(|| is_ending.then_some(BLOCKED)).map(str::to_owned);
        ack.state = match self.errors.error() {
            _ if recording.is_some() && ack.events > 0 || statistics.len() > 0 => AckState::Recording,
            _ if is_ending => AckState::Ending,
            Some(_) => AckState::Refused,
            None if recording.is_none() && ack.counters != Counters::default() => AckState::Ended,
            None => AckState::Waiting,
        };
        files::put(sessions, &self.name, dir, entry, ack)
    }

    /// Adds the number of times that each event of the current recording fired.
    pub(in crate::agent) fn count_fired(&self, fired: &mut BTreeMap<String, u64>) {
        let channels = self.session.last_status.account().into_iter().flat_map(|account| &account.channels);
        for event in channels.flat_map(|channel| &channel.events) {
            let most = fired.entry(event.name.clone()).or_default();
            *most = (*most).max(event.fired);
        }
    }
}

/// Reports the chunks that were removed from traces of limited size. The events before a sink was added count as one of its chunks, without
/// bytes.
fn removed_chunks(status: &Status) -> impl Iterator<Item = Notice> {
    let chunks = status.sinks.iter().filter_map(|sink| Some((sink, sink.account.chunk.as_ref()?)));
    let removed = chunks.filter(|(_, chunk)| chunk.removed.bytes > 0);
    let describe = |(sink, chunk): (&SinkReport, &Chunk)| {
        let RemovedChunks { chunks, events, bytes, .. } = chunk.removed;
        Notice::ChunksRemoved { sink: sink.name.clone(), chunks, events, bytes }
    };
    removed.map(describe)
}
