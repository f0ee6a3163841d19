//! A recording of this process: channels, sinks and the drain thread. Sessions built in code and sessions in files both use it.

use super::active_sink::{ActiveSink, output_line};
use super::channels::Channels;
use super::enabled_events::{EnabledEvents, LeftOut};
use super::rings::Rings;
use super::settings::RecordingSettings;
use super::shared_recording::SharedRecording;
use super::start_guard::StartGuard;
use super::{SessionError, Status, Summary};
use crate::budget::{EventUsage, Usage};
use crate::drain_thread::DrainThread;
use crate::drain_thread::shared::SharedDrain;
use crate::event::PlannedEvent;
use crate::process_bound::ProcessBound;
use crate::session_dirs::SessionDirs;
use crate::state::{Round, Runs};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tracepoint_core::channel::{MAX_OPEN, OpenChannel};
use tracepoint_core::clock::{select, selected};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::own_process::{modules, this_process, trace_name};
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_run_dir::{StateDumpStatus, clock};
use tracepoint_session_io::outputs::{self, InRings, Output};
use tracepoint_session_spec::{ChannelSpec, DrainedBy, SinkSource, SinkSpec, random_id};
use tracepoint_sinks::{ClockInfo, CtfError, Drain, Sink, SinkError, SinkReport, TraceInfo, own_thread};

/// A recording. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Recording {
    shared: Arc<SharedRecording>,
    /// `None` once it has stopped, and in a forked child.
    parts: ProcessBound<RecordingParts>,
}

/// The parts of a recording.
#[derive(Debug)]
pub(super) struct RecordingParts {
    pub(super) events: EnabledEvents,
    thread: DrainThread,
    pub(super) drain: Arc<SharedDrain>,
    pub(super) channels: Channels,
    pub(super) rings: Rings,
    pub(super) sinks: Vec<ActiveSink>,
    /// The part for other threads.
    shared: Arc<SharedRecording>,
    pub(super) trace: TraceInfo,
    /// Name of the process's traces in a directory with several.
    pub(super) trace_name: String,
    /// True if another process drains the rings.
    pub(super) drained_remotely: bool,
    /// The state dumps of this recording.
    dumps: Runs,
}

impl Recording {
    /// Starts recording `events`. Each channel will record at most `max_events` different events, unless the description has another limit.
    pub(crate) fn start(
        settings: RecordingSettings,
        events: &[PlannedEvent],
        max_events: usize,
        notices: &mut Vec<Notice>,
    ) -> Result<Self, SessionError> {
        let RecordingSettings { name, spec, sinks: mut sources, mut place, clock: chosen_clock, .. } = settings;
        let (room, needed) = (OpenChannel::room(), spec.all_channels().count());
        if room < needed {
            return Err(SessionError::NoChannelLeft { open: MAX_OPEN - room, needed, most: MAX_OPEN });
        }
        let failed = |error: CtfError| SessionError::Sink(error.to_string());
        sources.iter_mut().filter_map(SinkSource::description_mut).try_for_each(outputs::prepare).map_err(failed)?;
        let drained_remotely = spec.drain == DrainedBy::Recorder;
        clock::choose(chosen_clock)?;
        let mut info = this_process();
        if spec.records_call_stacks() {
            info.modules = modules();
        }
        let own_name = || trace_name(&info.name, &ProcessKey::of_this_process().to_string());
        let trace_name = settings.trace_name.unwrap_or_else(own_name);

        let uuid = random_id();
        let mut guard = StartGuard::default();
        let mut sinks: Vec<(Box<dyn Sink>, Option<SinkSpec>)> = Vec::new();
        for source in sources {
            let description = source.spec();
            let (sink, output) =
                outputs::of_source(source, &trace_name).map_err(|error| SessionError::Sink(error.to_string()))?;
            guard.outputs.push(output);
            sinks.push((sink, Some(description)));
        }
        if sinks.is_empty() {
            sinks.push((Box::new(InRings), None));
            guard.outputs.push(Output::default());
        }
        if let Some(reason) = place.refusal().filter(|_| spec.triggers().next().is_none()) {
            place.in_memory = true;
            notices.push(Notice::RingsInMemory(reason));
        }
        let rings = Rings::make(place, &spec.limits, &name)?;
        guard.dir = rings.store.dir().cloned();
        for (sink, _) in &mut sinks {
            rings.attach_sender(&mut **sink)?;
        }
        // With a recorder, the recorder writes it.
        let streams = if drained_remotely { None } else { rings.streams_file() };
        let mut flushed = None;
        if let Some(dir) = rings.store.dir().filter(|_| drained_remotely) {
            if spec.flush_ms.is_some() {
                flushed = Some(dir.make_flushed_file()?);
            }
            dir.admit_consumer()?;
        }
        let mut default = spec.channel.channel();
        if let Some(at_first) = settings.rings_at_first.filter(|_| spec.channel.at_first.is_none()) {
            default = default.at_first(at_first);
        }
        let further = spec.channels.iter().map(ChannelSpec::channel).collect();
        let max_events = spec.limits.max_events.unwrap_or(max_events);
        guard.channels = Channels::open(default, further, uuid, max_events, || rings.source())?;
        let channels = &guard.channels;
        // Open channels pin the process's clock; another thread may have changed it before they were opened.
        chosen_clock.map_or(Ok(()), select)?;
        let trace = TraceInfo { uuid, name: name.clone(), clock: clock_info(notices), process: info };
        let lines: Vec<_> = sinks.iter_mut().map(|(sink, _)| output_line(&mut **sink, notices)).collect();
        let outputs = (!drained_remotely).then(|| lines.concat());
        let mut enabled = EnabledEvents::new(&trace, channels, outputs);
        let mut drain = Drain::new(trace.clone(), channels.all().to_vec());
        if drained_remotely {
            drain = drain.leave_packets();
        }
        if let Some(ms) = spec.flush_ms {
            drain.limit_flush_age(Duration::from_millis(ms));
        }
        let mut added = Vec::new();
        for (sink, description) in sinks {
            added.push((drain.add_sink(sink).map_err(SessionError::Start)?, description));
        }
        let drain = Arc::new(SharedDrain::new(drain));
        if let Some(event) = enabled.describe(events, channels, &drain, &rings.store)?.first() {
            return Err(event.reason.into());
        }
        if let Some(timeout) = settings.sink_timeout {
            drain.set_timeout(timeout);
        }
        let thread = DrainThread::start(Arc::clone(&drain), rings.store.dir().cloned(), (flushed, streams))
            .map_err(SessionError::Thread)?;
        enabled.switch_all_on(channels)?;
        let (channels, outputs) = guard.finish();
        let sinks = added.into_iter().zip(outputs).zip(lines);
        let sinks =
            sinks.map(|(((id, spec), output), line)| ActiveSink { id: Arc::new(id.into()), spec, output, line });
        let (sinks, dumps) = (sinks.collect(), Runs::default());
        let shared = SharedRecording::new(&name, &drain, rings.store.clone());
        let parts = RecordingParts {
            events: enabled,
            thread,
            drain,
            channels,
            rings,
            sinks,
            shared: Arc::clone(&shared),
            trace,
            trace_name,
            drained_remotely,
            dumps,
        };
        Ok(Self { shared, parts: ProcessBound::new(parts) })
    }

    pub(crate) fn name(&self) -> &str {
        self.shared.name()
    }

    /// The parts, unless the recording has stopped. `None` in a forked child, which must not touch them.
    pub(super) fn parts(&self) -> Option<&RecordingParts> {
        self.parts.get()
    }

    pub(super) fn parts_mut(&mut self) -> Option<&mut RecordingParts> {
        self.parts.get_mut()
    }

    /// Returns the current status; an error if a sink blocks for longer than the caller waits.
    pub(crate) fn status_in_time(&self) -> Result<Status, SinkError> {
        let Some(parts) = self.parts() else { return Ok(Status::default()) };
        let status = |drain: &mut Drain| Status::new(drain.report(), parts.drain.rounds().counters());
        Ok(parts.drain.inspect(status)?.unwrap_or_default())
    }

    /// Returns the current status, if it is available without waiting.
    pub(crate) fn status_at_once(&self) -> Option<Status> {
        let parts = self.parts()?;
        parts.drain.try_inspect(|drain| Status::new(drain.report(), parts.drain.rounds().counters()))
    }

    /// Status of the [state dumps](crate::state_dump) that ran for the recording; none in a forked child.
    pub(crate) fn state_dumps(&self) -> Vec<StateDumpStatus> {
        self.parts().map(|parts| parts.dumps.status()).unwrap_or_default()
    }

    /// Returns the part for any thread.
    pub(crate) const fn shared(&self) -> &Arc<SharedRecording> {
        &self.shared
    }

    /// Records that the process that drains the rings has ended: no event waits for it any more. Must come before anything that waits for
    /// threads inside an event.
    pub(super) fn recorder_has_ended(&self) {
        if let Some(parts) = self.parts().filter(|parts| parts.drained_remotely) {
            parts.channels.all().iter().for_each(|channel| channel.remote_consumer_has_ended());
        }
    }

    /// Ends the recording, and waits for its sinks.
    pub(super) fn stop(mut self) -> Result<Summary, SessionError> {
        let cut_off = self.parts().and_then(|parts| parts.rings.cut_off.clone());
        let reports = self.take().map(RecordingParts::stop).unwrap_or_default();
        let cut_off_pages = cut_off.map_or(0, |pages| pages.load(Ordering::Relaxed));
        Ok(Summary::new(self.name().to_owned(), reports, cut_off_pages)?)
    }

    /// Takes the parts out, if they belong to this process.
    pub(super) fn take(&mut self) -> Option<RecordingParts> {
        self.parts.take()
    }

    /// Runs state dumps for this recording. Errors do not stop the recording.
    pub(crate) fn dump_state(&mut self, round: Round) {
        let Some(parts) = self.parts.get_mut() else { return };
        let due = parts.dumps.due(round);
        if due.is_empty() {
            return;
        }
        // Without the enclosing events a reader could not tell state from new events.
        if parts.events.switch_state_on(&parts.channels, &parts.drain, &parts.rings.store).is_ok() {
            parts.dumps.run(&due, self.shared.name(), parts.channels.first());
        } else {
            parts.dumps.skip(&due);
        }
    }

    /// Returns the cost so far; `None` once it has stopped. Waits for no sink.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let parts = self.parts()?;
        let channels = parts.channels.all().iter();
        let accounts: Vec<_> = channels.map(|channel| (channel.name(), channel.account())).collect();
        let mut events: BTreeMap<String, EventUsage> = BTreeMap::new();
        for (of, name, id) in parts.events.names() {
            let account = accounts.iter().find(|(channel, _)| *channel == of);
            if let Some(event) = account.and_then(|(_, account)| account.events.get(usize::from(id.get()))) {
                // An event that goes into several channels has costs in each.
                let sum = events.entry(name.to_owned()).or_default();
                sum.fired += event.fired;
                sum.recorded += event.recorded;
            }
        }
        let bytes = accounts.iter().flat_map(|(_, account)| &account.streams).map(|stream| stream.bytes).sum();
        Some(Usage { bytes, drain: parts.thread.taken(), events })
    }

    /// Explains why new threads get no ring, if so, and how to change that. Waits for no sink.
    pub(crate) fn ring_shortage(&self) -> Option<Notice> {
        let parts = self.parts()?;
        let kind = parts.thread.unsupplied()?;
        Some(Notice::NoRing(parts.rings.memory.refusal().unwrap_or_else(|| kind.to_string())))
    }

    /// Size of the rings, in bytes.
    pub(crate) fn ring_memory(&self) -> u64 {
        self.parts().map_or(0, |parts| parts.rings.memory.used())
    }

    /// Returns the number of additional rings that threads have taken because their own were full.
    pub(crate) fn overflowed(&self) -> u64 {
        self.parts().map_or(0, |parts| parts.thread.overflowed())
    }

    /// Its channels, which it closes at its end.
    pub(crate) fn channels(&self) -> Vec<Weak<OpenChannel>> {
        self.parts().into_iter().flat_map(|parts| parts.channels.all()).map(Arc::downgrade).collect()
    }

    /// Directory of the rings; `None` if they are in memory.
    pub(crate) fn ring_dir(&self) -> Option<&Path> {
        Some(self.parts()?.rings.store.dir()?.path())
    }

    /// Returns the outputs of the sinks that it has created.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.parts().into_iter().flat_map(|parts| parts.sinks.iter().map(|sink| &sink.output))
    }

    /// The directories of the session; `None` if its rings are in memory.
    pub(super) fn dirs(&self) -> Option<SessionDirs> {
        let dir = self.parts()?.rings.store.dir()?;
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (run_dir, session) = (dir.run_dir().map(absolute), absolute(dir.session().path()));
        Some(SessionDirs { run_dir, session, process: dir.name().to_owned() })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Some(parts) = self.take() else { return };
        // A panic in a drop during unwinding would abort the program.
        let stop = move || drop(catch_unwind(AssertUnwindSafe(|| parts.stop())));
        if tracepoint_core::in_probe() {
            // A probe cannot wait. If no thread can be started, the recording is dropped unfinished: the trace lacks its end, and `verify`
            // reports that.
            let _ = own_thread::spawn("tracepoint-stop", stop);
        } else {
            stop();
        }
    }
}

impl RecordingParts {
    /// Records exactly `events` from now on; returns whether it enabled further events, and whether new events could be described to the
    /// sinks. If not, those events are left out. Events for which a channel has no ids are left out as well, with a notice.
    ///
    /// On an error (the sites cannot be switched) the recording continues unchanged.
    pub(super) fn switch(
        &mut self,
        events: &[PlannedEvent],
        notices: &mut Vec<Notice>,
    ) -> Result<(bool, Result<(), SessionError>), SessionError> {
        let described = self.events.describe(events, &self.channels, &self.drain, &self.rings.store).map(|left_out| {
            let others = left_out.len().saturating_sub(1);
            let notice =
                |LeftOut { event, reason }| Notice::TooManyEvents { event, others, reason: reason.to_string() };
            notices.extend(left_out.into_iter().next().map(notice));
        });
        Ok((self.events.switch_to(events, &self.channels)?, described))
    }

    fn stop(mut self) -> Vec<SinkReport> {
        self.switch_off();
        self.finish()
    }

    /// Disables the events.
    pub(super) fn switch_off(&mut self) {
        // Dropping the old value notifies dumps that still run that the recording has ended.
        self.dumps = Runs::default();
        // Waits for a grace period: afterwards no thread writes into the rings.
        self.events.switch_all_off();
    }

    /// Moves the remaining packets from the rings to the sinks, and finishes these. The events must be disabled.
    pub(super) fn finish(self) -> Vec<SinkReport> {
        let Self { thread, drain, channels, rings, shared, drained_remotely, .. } = self;
        shared.close();
        thread.stop();
        let reports = drain.take().map(Drain::finish).unwrap_or_default();
        channels.close();
        drop(channels);
        // Complete accounts mean that every packet was passed to the sinks or is counted as lost; otherwise the ring files stay.
        let drained = !reports.is_empty() && reports.iter().all(|report| report.account.complete);
        match rings.store.dir() {
            Some(dir) if drained_remotely => dir.leave(),
            Some(dir) if drained => dir.remove(),
            _ => {}
        }
        reports
    }
}

fn clock_info(notices: &mut Vec<Notice>) -> ClockInfo {
    if !selected().is_monotonic() {
        return ClockInfo::default();
    }
    if cfg!(not(target_os = "linux")) {
        return clock::own_clock_info();
    }
    let mut not_shared = |reason: String| notices.push(Notice::NoSharedClock(reason));
    match RunDir::of_traced_process() {
        Ok(run_dir) => {
            let (info, shared) = clock::clock_info(&run_dir);
            if let Err(error) = shared {
                not_shared(format!("{} in {}", error, run_dir.path().display()));
            }
            info
        }
        Err(error) => {
            not_shared(error.to_string());
            clock::own_clock_info()
        }
    }
}
