//! A recording of this process: channels, sinks and the drain thread. Sessions built in code and sessions in files both use it.

use super::active_sink::ActiveSink;
use super::channels::Channels;
use super::handle::RecordingHandle;
use super::live::{LeftOut, LiveEvents};
use super::rings::{RingPlace, Rings};
use super::start_guard::StartGuard;
use super::{SessionError, Status, Summary, output_list};
use crate::budget::{EventUsage, Usage};
use crate::drain_thread::DrainThread;
use crate::drain_thread::shared::SharedDrain;
use crate::event::PlannedEvent;
use crate::state::{Round, Runs};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use tracepoint_core::channel::OpenChannel;
use tracepoint_core::clock::{Clock, select, selected};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::own_process::{modules, this_process, trace_name};
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_run_dir::{StateDumpStatus, clock};
use tracepoint_session_io::outputs::{self, InRings, Output};
use tracepoint_session_spec::{ChannelSpec, DrainedBy, SessionSpec, SinkSource, SinkSpec, random_id};
use tracepoint_sinks::{ClockInfo, Drain, Sink, SinkError, SinkReport, TraceInfo};

/// Parameters of a recording.
#[derive(Debug)]
pub(super) struct Plan<'e> {
    pub(super) name: String,
    pub(super) spec: SessionSpec,
    pub(super) sinks: Vec<SinkSource>,
    pub(super) place: RingPlace,
    pub(super) clock: Option<Clock>,
    pub(super) sink_timeout: Option<Duration>,
    pub(super) rings_at_first: Option<usize>,
    pub(super) trace_name: Option<String>,
    pub(super) events: &'e [PlannedEvent],
    /// Maximum number of different events in each channel.
    pub(super) most: usize,
}

/// A recording. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Recording {
    name: String,
    /// The process that started it.
    process: u32,
    pub(super) notices: Vec<Notice>,
    /// `None` once it has stopped.
    running: Option<Running>,
}

/// The parts of a running recording.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) live: LiveEvents,
    thread: DrainThread,
    pub(super) drain: Arc<SharedDrain>,
    pub(super) channels: Channels,
    pub(super) rings: Rings,
    pub(super) sinks: Vec<ActiveSink>,
    /// The handle for other threads.
    handle: Arc<RecordingHandle>,
    pub(super) trace: TraceInfo,
    /// Name of the process's traces in a directory with several.
    pub(super) trace_name: String,
    /// True if another process drains the rings.
    pub(super) drained_remotely: bool,
    /// The state dumps of this recording.
    dumps: Runs,
}

impl Recording {
    /// Starts recording.
    pub(super) fn start(plan: Plan<'_>, mut notices: Vec<Notice>) -> Result<Self, SessionError> {
        let Plan { name, spec, events, most, mut place, .. } = plan;
        let drained_remotely = spec.drain == DrainedBy::Recorder;
        clock::choose(plan.clock)?;
        let mut info = this_process();
        if spec.records_call_stacks() {
            info.modules = modules();
        }
        let trace_name =
            plan.trace_name.unwrap_or_else(|| trace_name(&info.name, &ProcessKey::of_this_process().to_string()));

        let uuid = random_id().into_bytes();
        let mut guard = StartGuard::default();
        let mut sinks: Vec<(Box<dyn Sink>, Option<SinkSpec>)> = Vec::new();
        for source in plan.sinks {
            let description = source.spec();
            let (sink, output) =
                outputs::of_source(source, &trace_name).map_err(|reason| SessionError::Sink { reason })?;
            guard.outputs.push(output);
            sinks.push((sink, Some(description)));
        }
        if sinks.is_empty() {
            sinks.push((Box::new(InRings), None));
            guard.outputs.push(Output::default());
        }
        if let Some(reason) = place.refusal().filter(|_| spec.triggers().next().is_none()) {
            place.in_memory = true;
            notices.push(Notice::RingsInMemory { reason });
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
        if let Some(at_first) = plan.rings_at_first.filter(|_| spec.channel.at_first.is_none()) {
            default = default.at_first(at_first);
        }
        let further = spec.channels.iter().map(ChannelSpec::channel).collect();
        guard.channels = Channels::open(default, further, uuid, most, || rings.source())?;
        let channels = &guard.channels;
        // Open channels pin the process's clock; another thread may have changed it before they were opened.
        plan.clock.map_or(Ok(()), select)?;
        let trace = TraceInfo { uuid, name: name.clone(), clock: clock_info(&mut notices), process: info };
        let lines: Vec<_> = sinks.iter_mut().map(|(sink, _)| output_list::line(&mut **sink, &mut notices)).collect();
        let outputs = (!drained_remotely).then(|| lines.concat());
        let mut live = LiveEvents::new(&trace, channels, outputs);
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
        if let Some(event) = live.describe(events, channels, &drain, &rings.store)?.first() {
            return Err(event.reason.into());
        }
        if let Some(timeout) = plan.sink_timeout {
            drain.set_timeout(timeout);
        }
        let thread = DrainThread::start(Arc::clone(&drain), rings.store.dir().cloned(), (flushed, streams))
            .map_err(SessionError::Thread)?;
        live.switch_all_on(channels)?;
        let (channels, outputs) = guard.finish();
        let sinks = added.into_iter().zip(outputs).zip(lines);
        let sinks =
            sinks.map(|(((id, spec), output), line)| ActiveSink { id: Arc::new(id.into()), spec, output, line });
        let (sinks, dumps) = (sinks.collect(), Runs::default());
        let handle = RecordingHandle::new(&name, &drain, rings.store.clone());
        let running =
            Running { live, thread, drain, channels, rings, sinks, handle, trace, trace_name, drained_remotely, dumps };
        Ok(Self { name, process: process::id(), notices, running: Some(running) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The process that started it.
    pub(super) const fn process(&self) -> u32 {
        self.process
    }

    /// The running parts, unless the recording has stopped. `None` in a forked child, which must not touch them.
    pub(super) fn running(&self) -> Option<&Running> {
        self.running.as_ref().filter(|_| self.is_ours())
    }

    pub(super) fn running_mut(&mut self) -> Option<&mut Running> {
        if self.is_ours() { self.running.as_mut() } else { None }
    }

    /// Returns the drain, which it shares with its thread.
    pub(super) fn drain(&self) -> Option<Arc<SharedDrain>> {
        self.running().map(|running| Arc::clone(&running.drain))
    }

    /// Returns the current status; an error if a sink blocks for longer than the caller waits.
    pub(crate) fn status_in_time(&self) -> Result<Status, SinkError> {
        match self.running() {
            Some(running) => {
                let status = |drain: &mut Drain| Status::new(drain.report(), running.drain.rounds().counters());
                Ok(running.drain.inspect(status)?.unwrap_or_default())
            }
            None => Ok(Status::default()),
        }
    }

    /// Returns the current status, if it is available without waiting.
    pub(crate) fn status_at_once(&self) -> Option<Status> {
        let running = self.running()?;
        running.drain.try_inspect(|drain| Status::new(drain.report(), running.drain.rounds().counters()))
    }

    /// Status of the [state dumps](crate::state_dump) that ran for the recording; none in a forked child.
    pub(crate) fn state_dumps(&self) -> Vec<StateDumpStatus> {
        self.running().map(|running| running.dumps.status()).unwrap_or_default()
    }

    /// Returns the handle for any thread; `None` once it has stopped.
    pub(crate) fn handle(&self) -> Option<Arc<RecordingHandle>> {
        self.running().map(|running| Arc::clone(&running.handle))
    }

    /// Makes the sinks that can rotate continue in a new chunk.
    pub(crate) fn rotate(&self) -> Result<Vec<PathBuf>, SessionError> {
        let cannot = || SessionError::CannotRotate { name: self.name.clone() };
        self.running().ok_or_else(cannot)?.handle.rotate()
    }

    /// Ends the recording, and waits for its sinks.
    pub(super) fn stop(mut self) -> Result<Summary, SessionError> {
        let cut_off = self.running.as_ref().and_then(|running| running.rings.cut_off.clone());
        let reports = self.running.take().map(Running::stop).unwrap_or_default();
        let cut_off_pages = cut_off.map_or(0, |pages| pages.load(Ordering::Relaxed));
        Ok(Summary::new(self.name.clone(), reports, cut_off_pages)?)
    }

    /// Takes the running parts out, if they belong to this process.
    pub(super) fn take(&mut self) -> Option<Running> {
        self.is_ours().then(|| self.running.take()).flatten()
    }

    /// Runs state dumps for this recording. Errors do not stop the recording.
    pub(crate) fn dump_state(&mut self, round: Round) {
        let due = self.running.as_ref().map(|running| running.dumps.due(round)).unwrap_or_default();
        if let Some(running) = self.running.as_mut().filter(|_| !due.is_empty()) {
            // Without the enclosing events a reader could not tell state from new events.
            if running.live.switch_state_on(&running.channels, &running.drain, &running.rings.store).is_ok() {
                running.dumps.run(&due, &self.name, running.channels.first());
            } else {
                running.dumps.skip(&due);
            }
        }
    }

    /// Returns the cost so far; `None` once it has stopped. Waits for no sink.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let running = self.running.as_ref()?;
        let channels = running.channels.all().iter();
        let accounts: BTreeMap<_, _> = channels.map(|channel| (channel.name(), channel.account())).collect();
        let mut events: BTreeMap<String, EventUsage> = BTreeMap::new();
        for (channel, name, id) in running.live.names() {
            if let Some(event) = accounts.get(channel).and_then(|account| account.events.get(usize::from(id.get()))) {
                // An event that goes into several channels has costs in each.
                let sum = events.entry(name.to_owned()).or_default();
                sum.fired += event.fired;
                sum.recorded += event.recorded;
            }
        }
        let bytes = accounts.values().flat_map(|account| &account.streams).map(|stream| stream.bytes).sum();
        Some(Usage { bytes, drain: running.thread.taken(), events })
    }

    /// Explains why new threads get no ring, if so, and how to change that. Waits for no sink.
    pub(crate) fn ring_shortage(&self) -> Option<Notice> {
        let running = self.running.as_ref()?;
        let kind = running.thread.unsupplied()?;
        Some(Notice::NoRing { reason: running.rings.memory.refusal().unwrap_or_else(|| kind.to_string()) })
    }

    /// Size of the rings, in bytes.
    pub(crate) fn ring_memory(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.rings.memory.used())
    }

    /// Returns the number of additional rings that threads have taken because their own were full.
    pub(crate) fn overflowed(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.thread.overflowed())
    }

    /// Its channels, which it closes at its end.
    pub(crate) fn channels(&self) -> Vec<Weak<OpenChannel>> {
        self.running.iter().flat_map(|running| running.channels.all()).map(Arc::downgrade).collect()
    }

    /// Directory of the rings; `None` if they are in memory.
    pub(crate) fn ring_dir(&self) -> Option<&Path> {
        Some(self.running.as_ref()?.rings.store.dir()?.path())
    }

    /// Returns the outputs of the sinks that it has created.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.running.iter().flat_map(|running| running.sinks.iter().map(|sink| &sink.output))
    }

    fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if self.is_ours() {
            // A panic in a drop during unwinding would abort the program.
            let stop = move || drop(catch_unwind(AssertUnwindSafe(|| running.stop())));
            if tracepoint_core::in_probe() {
                // A probe cannot wait. If no thread can be started, the recording is dropped unfinished: the trace lacks its end, and
                // `verify` reports that.
                let _ = thread::Builder::new().name("tracepoint-stop".to_owned()).spawn(stop);
            } else {
                stop();
            }
        } else {
            // The thread, the rings and the files belong to the parent, and a thread that does not exist here may hold a lock.
            std::mem::forget(running);
        }
    }
}

impl Running {
    /// Records exactly `events` from now on; returns whether it enabled further events, and whether new events could be described to the
    /// sinks. If not, those events are left out. Events for which a channel has no ids are left out as well, with a notice.
    ///
    /// On an error (the sites cannot be switched) the recording continues unchanged.
    pub(super) fn switch(
        &mut self,
        events: &[PlannedEvent],
        notices: &mut Vec<Notice>,
    ) -> Result<(bool, Result<(), SessionError>), SessionError> {
        let described = self.live.describe(events, &self.channels, &self.drain, &self.rings.store).map(|left_out| {
            let others = left_out.len().saturating_sub(1);
            let notice =
                |LeftOut { event, reason }| Notice::TooManyEvents { event, others, reason: reason.to_string() };
            notices.extend(left_out.into_iter().next().map(notice));
        });
        Ok((self.live.switch_to(events, &self.channels)?, described))
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
        self.live.switch_all_off();
    }

    /// Moves the remaining packets from the rings to the sinks, and finishes these. The events must be disabled.
    pub(super) fn finish(self) -> Vec<SinkReport> {
        let Self { thread, drain, channels, rings, handle, drained_remotely, .. } = self;
        handle.close();
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
    let mut not_shared = |reason: String| notices.push(Notice::NoSharedClock { reason });
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
