//! Changes to the channels and sinks of a running recording. [`RecordingParts::switch`] changes its events.

use super::SessionError;
use super::active_sink::{ActiveSink, output_line};
use super::recording::{Recording, RecordingParts};
use crate::channel_room;
use crate::drain_thread::shared::will_complete_later;
use crate::event::PlannedEvent;
use std::sync::{Arc, OnceLock};
use tracepoint_core::channel::Channel;
use tracepoint_core::context::Context;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::own_process::modules;
use tracepoint_session_io::outputs::{self, InRings, Output, prepare};
use tracepoint_session_spec::{ChannelSpec, SessionSpec, SinkSource, SinkSpec};
use tracepoint_sinks::{Drain, Sink, SinkId, SinkReport};

/// Result of a change.
#[derive(Debug, Default)]
pub(crate) struct RecordingChanges {
    /// True if it enabled further events.
    pub(crate) more_events: bool,
    /// Deviations of the recording from the description.
    pub(crate) notices: Vec<Notice>,
    /// Errors of the parts that failed; the other parts were applied.
    pub(crate) errors: Vec<SessionError>,
}

impl Recording {
    /// Applies a description and a set of events to the recording: adds and removes what differs.
    pub(crate) fn follow(&mut self, spec: &SessionSpec, events: &[PlannedEvent]) -> RecordingChanges {
        let mut changed = RecordingChanges { notices: self.pending_settings(spec), ..RecordingChanges::default() };
        let Some(parts) = self.parts_mut() else { return changed };
        if !parts.drained_remotely {
            for channel in spec.all_channels() {
                if parts.channels.named(&channel.name).is_none() {
                    changed.errors.extend(parts.add_channel(channel.channel()).err());
                }
            }
            for sink in parts.missing_sinks(&spec.sinks) {
                changed.errors.extend(parts.add_sink(sink.into(), &mut Vec::new()).err());
            }
        }
        let events: Vec<_> =
            events.iter().filter(|event| parts.channels.named(&event.channel).is_some()).cloned().collect();
        match parts.switch(&events, &mut changed.notices) {
            Ok((more, described)) => {
                changed.more_events = more;
                changed.errors.extend(described.err());
            }
            Err(error) => changed.errors.push(error),
        }
        let wanted = spec.channel_names();
        let gone = parts.channels.names().into_iter().filter(|name| !wanted.contains(name));
        for name in gone.map(str::to_owned).collect::<Vec<_>>() {
            changed.errors.extend(parts.remove_channel(&name).err());
        }
        if !parts.drained_remotely {
            for sink in parts.surplus_sinks(&spec.sinks) {
                changed.errors.extend(parts.remove_sink(&sink).err());
            }
        }
        changed
    }

    /// Returns notices about settings of open channels, and limits, that differ from their descriptions: a recording keeps its original
    /// ones.
    pub(crate) fn pending_settings(&self, spec: &SessionSpec) -> Vec<Notice> {
        let Some(parts) = self.parts() else { return Vec::new() };
        let pending = |channel: &ChannelSpec| {
            let settings = channel.settings_unlike(parts.channels.named(&channel.name)?.config());
            let (session, channel) = (self.name().to_owned(), channel.name.clone());
            (!settings.is_empty()).then_some(Notice::ChannelSettingsPending { session, channel, settings })
        };
        let limits = spec.limits.unlike(&parts.rings.limits);
        let session = self.name().to_owned();
        let limits = (!limits.is_empty()).then_some(Notice::LimitsPending { session, settings: limits });
        spec.all_channels().filter_map(pending).chain(limits).collect()
    }

    /// Adds a sink, which gets the packets that are moved from now on.
    pub(super) fn add_sink(&mut self, mut sink: SinkSource, notices: &mut Vec<Notice>) -> Result<SinkId, SessionError> {
        let stopped = SessionError::Stopped(self.name().to_owned());
        let Some(parts) = self.parts_mut() else { return Err(stopped) };
        sink.description_mut().map_or(Ok(()), prepare).map_err(|error| SessionError::Sink(error.to_string()))?;
        parts.add_sink(sink, notices)?.get().copied().ok_or(stopped)
    }

    /// Removes a sink; returns its report.
    pub(super) fn remove_sink(&mut self, id: SinkId) -> Result<SinkReport, SessionError> {
        let missing = SessionError::NoSuchSink(self.name().to_owned());
        let sink = self.parts().and_then(|parts| {
            let mut ids = parts.sinks.iter().filter(|sink| sink.spec.is_some()).map(|sink| &sink.id);
            ids.find(|sink| sink.get() == Some(&id)).map(Arc::clone)
        });
        match (self.parts_mut(), sink) {
            (Some(parts), Some(sink)) => parts.remove_sink(&sink)?.ok_or(missing),
            _ => Err(missing),
        }
    }

    /// The recording's sinks, with their descriptions.
    pub(super) fn sinks(&self) -> Vec<(SinkId, SinkSpec)> {
        let sinks = self.parts().into_iter().flat_map(|parts| &parts.sinks);
        sinks.filter_map(|sink| Some((*sink.id.get()?, sink.spec.clone()?))).collect()
    }

    /// Adds a channel; later rules may name it.
    pub(super) fn add_channel(&mut self, channel: Channel) -> Result<(), SessionError> {
        let stopped = SessionError::Stopped(self.name().to_owned());
        self.parts_mut().ok_or(stopped)?.add_channel(channel)
    }

    /// Returns whether the recording must be restarted for this description: the channels of a remotely drained recording cannot change.
    pub(crate) fn needs_restart_for(&self, spec: &SessionSpec) -> bool {
        let has = |parts: &RecordingParts| {
            spec.all_channels().map(|channel| channel.name.as_str()).eq(parts.channels.names())
        };
        self.parts().is_some_and(|parts| parts.drained_remotely && !has(parts))
    }
}

impl RecordingParts {
    fn add_channel(&mut self, config: Channel) -> Result<(), SessionError> {
        let is_with_stacks = config.contexts().any(|context| context == Context::CallStack);
        let mut further = if is_with_stacks { modules() } else { Vec::new() };
        further.retain(|module| !self.trace.process.modules.contains(module));
        let channel = self.channels.begin_add(config, self.rings.source())?;
        // Before its first record: the rings of a killed process must be readable.
        let described = self.events.describe_channel(&self.trace, &channel, &further, &self.rings.store);
        if let Err(error) = described {
            self.channels.abort_add();
            return Err(error);
        }
        let modules = further.clone();
        match self.drain.act(move |drain| drain.add_channel(&channel, &modules)) {
            Ok(_) => {
                self.channels.commit_add();
                self.trace.process.modules.append(&mut further);
                // Its events may wait for less time than the interval in which the drain thread sleeps.
                self.drain.rounds().wake();
            }
            // The drain may add it later; the next attempt continues from here.
            Err(error) if will_complete_later(&error) => return Err(SessionError::Change(error)),
            Err(error) => {
                self.channels.abort_add();
                return Err(SessionError::Change(error));
            }
        }
        Ok(())
    }

    /// Disables the channel's events, and moves the contents of its rings to the sinks.
    fn remove_channel(&mut self, name: &str) -> Result<(), SessionError> {
        self.events.remove_channel(name);
        let Some(channel) = self.channels.remove(name) else {
            return Err(SessionError::NoChannel { name: name.to_owned(), known: self.channels.names().join(", ") });
        };
        let class = channel.class();
        let remove = move |drain: &mut Drain| {
            drain.remove_channel(class);
            channel_room::close(&channel);
            Ok(())
        };
        self.drain.act(remove).map(drop).map_err(SessionError::Change)
    }

    pub(super) fn add_sink(
        &mut self,
        sink: SinkSource,
        notices: &mut Vec<Notice>,
    ) -> Result<Arc<OnceLock<SinkId>>, SessionError> {
        let spec = sink.spec();
        let (mut sink, output) =
            outputs::of_source(sink, &self.trace_name).map_err(|error| SessionError::Sink(error.to_string()))?;
        self.rings.attach_sender(&mut *sink)?;
        let line = output_line(&mut *sink, notices);
        let id = self.begin_sink(sink, Some(spec), output, line)?;
        let placeholder = self.sinks.iter().find(|sink| sink.spec.is_none()).map(|sink| Arc::clone(&sink.id));
        if let Some(placeholder) = placeholder {
            self.remove_sink(&placeholder)?;
        }
        Ok(id)
    }

    fn begin_sink(
        &mut self,
        sink: Box<dyn Sink>,
        spec: Option<SinkSpec>,
        output: Output,
        line: Vec<u8>,
    ) -> Result<Arc<OnceLock<SinkId>>, SessionError> {
        let id = Arc::<OnceLock<SinkId>>::default();
        self.sinks.push(ActiveSink { id: Arc::clone(&id), spec, output, line });
        // Listed before its first packet: recovery looks there for packets that are no longer in the rings.
        let own = Arc::clone(&id);
        let add = move |drain: &mut Drain| drain.add_sink(sink).map(|id| own.get_or_init(|| id).to_owned());
        let added = self.list_outputs().and_then(|()| self.drain.act(add).map(|_| ()).map_err(SessionError::Start));
        match added {
            Ok(()) => Ok(id),
            Err(error) => {
                // The drain adds a delayed sink when the blocking sink continues, so it stays listed.
                let is_delayed = matches!(&error, SessionError::Start(error) if will_complete_later(error));
                if !is_delayed && let Some(sink) = self.sinks.pop() {
                    sink.output.remove_unused();
                    let _ = self.list_outputs();
                }
                Err(error)
            }
        }
    }

    /// Moves the contents of the rings to the sink, and finishes it; `None` if it does not exist.
    fn remove_sink(&mut self, id: &Arc<OnceLock<SinkId>>) -> Result<Option<SinkReport>, SessionError> {
        let Some(index) = self.sinks.iter().position(|sink| Arc::ptr_eq(&sink.id, id)) else { return Ok(None) };
        if self.sinks.len() == 1 {
            // The placeholder: a description without sinks means that the newest events stay in the rings.
            self.begin_sink(Box::new(InRings), None, Output::default(), Vec::new())?;
        }
        let own = Arc::clone(id);
        let remove = move |drain: &mut Drain| Ok(own.get().and_then(|id| drain.remove_sink(*id)));
        let removed = self.drain.act(remove);
        if !matches!(&removed, Err(error) if !will_complete_later(error)) {
            self.sinks.remove(index);
            self.list_outputs()?;
        }
        Ok(removed.map_err(SessionError::Change)?.flatten())
    }

    fn list_outputs(&mut self) -> Result<(), SessionError> {
        let lines = self.sinks.iter().map(|sink| &sink.line[..]).collect::<Vec<_>>().concat();
        self.events.list_outputs(lines, &self.rings.store)
    }

    /// Returns the descriptions in `wanted` without a sink. Two equal descriptions are two sinks.
    fn missing_sinks(&self, wanted: &[SinkSpec]) -> Vec<SinkSpec> {
        let mut there: Vec<_> = self.sinks.iter().filter_map(|sink| sink.spec.as_ref()).collect();
        let mut missing = Vec::new();
        for sink in wanted {
            match there.iter().position(|known| *known == sink) {
                Some(index) => drop(there.swap_remove(index)),
                None => missing.push(sink.clone()),
            }
        }
        missing
    }

    /// The sinks that are not in `wanted`.
    fn surplus_sinks(&self, wanted: &[SinkSpec]) -> Vec<Arc<OnceLock<SinkId>>> {
        let mut wanted: Vec<_> = wanted.iter().collect();
        let mut surplus = Vec::new();
        for sink in &self.sinks {
            let Some(spec) = &sink.spec else { continue };
            match wanted.iter().position(|wanted| *wanted == spec) {
                Some(index) => drop(wanted.swap_remove(index)),
                None => surplus.push(Arc::clone(&sink.id)),
            }
        }
        surplus
    }
}
