//! A session as it is applied in this process.

use super::budget::Watch;
use super::chosen::{Buckets, Chosen};
use super::context::Context;
use super::sinks::{self, Nowhere};
use super::watch::{has_ended, watch};
use crate::ack::{Ack, AckState, Counters};
use crate::app::{self, ACKS, SESSION};
use crate::private_dir::{DirError, PrivateDir};
use crate::session::{PlannedEvent, Session, SessionError};
use crate::spec::{MAX_SIZE, SessionSpec, State};
use crate::state::{self, Round};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Instant;
use tracepoint_sinks::account::Account;

/// Tells a `session.toml` from the one that was there before.
type Stamp = (u64, i64, i64, u64);

/// A session in this process.
#[derive(Debug)]
pub(super) struct Applied {
    name: String,
    stamp: Option<Stamp>,
    spec: Option<SessionSpec>,
    recording: Option<Session>,
    buckets: Buckets,
    budget: Watch,
    /// Of recordings that ended.
    before: Counters,
    /// While the session goes on, and if its end is bound to a process's.
    owner: Option<OwnedFd>,
    owner_ended: bool,
    ack: Ack,
}

impl Applied {
    /// The session called `name`, of which nothing is applied yet.
    pub(super) fn new(name: String, context: &Context) -> Self {
        let ack = Ack {
            process: context.key(),
            name: context.info.name.clone(),
            id: String::new(),
            generation: 0,
            state: AckState::Waiting,
            error: None,
            rules: Vec::new(),
            events: 0,
            notices: Vec::new(),
            over_budget: Vec::new(),
            times_over_budget: 0,
            state_dumps: Vec::new(),
            counters: Counters::default(),
            outputs: Vec::new(),
            rings: None,
        };
        let (buckets, before) = (Buckets::default(), Counters::default());
        Self {
            name,
            stamp: None,
            spec: None,
            recording: None,
            buckets,
            budget: Watch::default(),
            before,
            owner: None,
            owner_ended: false,
            ack,
        }
    }

    /// Looks at the session's file, and does what it says if that is something new. `false` if there is no such session any more, or it
    /// is not for this process. `dir` is its directory.
    pub(super) fn look(&mut self, dir: &PrivateDir, context: &Context, events_changed: bool) -> bool {
        self.owner_ended |= self.owner.as_ref().is_some_and(has_ended);
        // The second for one that cannot be watched.
        let is_over = |spec: &SessionSpec| self.recording.is_some() && spec.is_over();
        let over = (self.owner_ended && self.owner.is_some()) || self.spec.as_ref().is_some_and(is_over);
        match read(dir, self.stamp) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.end();
                return false;
            }
            Err(error) => {
                if over {
                    self.end();
                }
                self.ack.refuse(&format!("session.toml cannot be read: {error}"));
            }
            // What could not be done may be possible now.
            Ok(None) if over || events_changed || self.ack.state == AckState::Refused => {
                if let Some(spec) = self.spec.take() {
                    self.apply(spec, context);
                }
            }
            Ok(None) => {
                if let Some(recording) = &mut self.recording {
                    recording.dump_state(Round::New);
                }
            }
            Ok(Some((stamp, bytes))) => {
                self.stamp = Some(stamp);
                match SessionSpec::parse(&bytes) {
                    Ok(spec) if !spec.is_for(context.info.tag.as_deref()) => {
                        self.end();
                        return false;
                    }
                    Ok(spec) => self.apply(spec, context),
                    Err(error) => {
                        if let Some((id, generation)) = SessionSpec::identify(&bytes) {
                            (self.ack.id, self.ack.generation) = (id, generation);
                        }
                        self.ack.refuse(&format!("session.toml: {error}"));
                    }
                }
            }
        }
        true
    }

    fn apply(&mut self, spec: SessionSpec, context: &Context) {
        if self.ack.id != spec.id {
            self.end();
            (self.before, self.buckets) = (Counters::default(), Buckets::default());
            self.budget = Watch::default();
            self.ack.outputs.clear();
            self.owner_ended = false;
        }
        // Watched before it is asked for: one that ends from here on wakes the agent.
        let owner = spec.owner.filter(|_| !self.owner_ended).and_then(watch);
        let is_over = self.owner_ended || spec.is_over();
        self.ack.id.clone_from(&spec.id);
        self.ack.generation = spec.generation;
        self.ack.error = None;
        let Chosen { mut events, rules, notices } = self.buckets.choose(&spec, context);
        (self.ack.rules, self.ack.notices) = (rules, notices);
        self.budget.follow(spec.budget.as_ref());
        events.retain(|event| !self.budget.bars(&event.name));
        if spec.state == State::Active {
            (self.ack.over_budget, self.ack.times_over_budget) = self.budget.told();
        } else {
            // What was off while it recorded stands in the acknowledgement until it records again.
            self.budget.begin_anew();
        }
        if spec.state != State::Active || is_over {
            events.clear();
        }
        self.ack.events = events.len();
        if is_over || (spec.state == State::Stopped && !spec.sinks.is_empty()) {
            self.end();
        } else if let Err(error) = self.record(&spec, &events, context) {
            self.ack.refuse(&error);
        }
        self.owner = owner.filter(|_| !is_over);
        self.spec = Some(spec);
    }

    /// Records these events; the error is why it does not.
    fn record(&mut self, spec: &SessionSpec, events: &[PlannedEvent], context: &Context) -> Result<(), String> {
        if let Some(recording) = &mut self.recording {
            let more = recording.switch(events).map_err(|error| error.to_string())?;
            recording.dump_state(if more { Round::All } else { Round::New });
            return Ok(());
        }
        if events.is_empty() {
            return Ok(());
        }
        let mut builder = Session::builder(&self.name)
            .dir(context.sessions.join(&self.name))
            .channel(spec.channel.channel())
            .memory_cap(spec.limits.memory_cap)
            .keep_dead(spec.limits.keep_dead)
            .keep_dead_bytes(spec.limits.keep_dead_bytes);
        if spec.sinks.is_empty() {
            builder = builder.sink(Nowhere);
        }
        let outputs = self.ack.outputs.len();
        for sink in &spec.sinks {
            let made = sinks::ctf(&sink.path, &context.trace_name(), sink.max_size);
            let (sink, path) = made.map_err(|error| error.to_string())?;
            builder = builder.sink(sink);
            self.ack.outputs.push(path);
        }
        match builder.record(events, context.events.len() + state::EVENTS, Vec::new()) {
            Ok(mut recording) => {
                recording.dump_state(Round::All);
                self.ack.rings = recording.ring_dir().map(std::path::Path::to_owned);
                self.recording = Some(recording);
                Ok(())
            }
            Err(error) => {
                for unused in self.ack.outputs.drain(outputs..) {
                    // Where something is in it, it is worth keeping.
                    let _ = std::fs::remove_dir(unused);
                }
                Err(error.to_string())
            }
        }
    }

    /// Ends the recording, if there is one: its outputs are complete then.
    pub(super) fn end(&mut self) {
        self.owner = None;
        self.ack.events = 0;
        self.budget.begin_anew();
        let Some(recording) = self.recording.take() else { return };
        self.ack.rings = None;
        self.ack.state_dumps = recording.state_dumps();
        let summary = match recording.stop() {
            Ok(summary) => Some(summary),
            Err(error) => {
                self.ack.error = Some(error.to_string());
                if let SessionError::Sinks { summary, .. } = error { Some(*summary) } else { None }
            }
        };
        if let Some((account, bytes)) = summary.as_ref().and_then(|summary| Some((summary.account()?, summary.bytes))) {
            self.before.add_account(account, bytes);
        }
    }

    /// Writes down what was done, and what was recorded so far.
    pub(super) fn acknowledge(&mut self, dir: &PrivateDir, entry: &str) -> Result<(), DirError> {
        self.ack.counters = self.before.clone();
        if let Some((account, bytes)) = self.account() {
            self.ack.counters.add_account(&account, bytes);
        }
        if let Some(recording) = &self.recording {
            self.ack.state_dumps = recording.state_dumps();
        }
        self.ack.state = match self.ack.state {
            _ if self.recording.is_some() && self.ack.events > 0 => AckState::Recording,
            AckState::Refused if self.ack.error.is_some() => AckState::Refused,
            _ if self.recording.is_none() && self.ack.counters != Counters::default() => AckState::Ended,
            _ => AckState::Waiting,
        };
        let acks = dir.subdir(ACKS)?;
        let name = app::ack_name(entry);
        app::replace_json(&acks, &name, &self.ack).map_err(|error| acks.failed("write", &name, error))
    }

    /// Whether somebody has to look at what it costs.
    pub(super) fn has_budget(&self) -> bool {
        self.recording.is_some() && self.ack.events > 0 && self.spec.as_ref().is_some_and(|spec| spec.budget.is_some())
    }

    /// Looks at what it costs, and switches an event off if that is too much; what is to be told of it, and in which generation.
    pub(super) fn look_at_budget(&mut self, context: &Context) -> Option<(u64, String)> {
        let spec = self.spec.take()?;
        let usage = self.recording.as_ref().and_then(Session::usage);
        let over = spec.budget.as_ref().zip(usage).and_then(|(budget, usage)| {
            let over = self.budget.look(budget, Instant::now(), usage)?;
            Some((spec.generation, format!("budget: {over}")))
        });
        if over.is_some() {
            self.apply(spec, context);
        } else {
            self.spec = Some(spec);
        }
        over
    }

    /// Adds how often each of its events fired in the recording that goes on.
    pub(super) fn count_fired(&self, fired: &mut BTreeMap<String, u64>) {
        let Some((account, _)) = self.account() else { return };
        for event in account.channels.iter().flat_map(|channel| &channel.events) {
            let most = fired.entry(event.name.clone()).or_default();
            *most = (*most).max(event.fired);
        }
    }

    fn account(&self) -> Option<(Account, u64)> {
        let status = self.recording.as_ref()?.status();
        let bytes = status.bytes();
        Some((status.sinks.into_iter().next()?.account, bytes))
    }

    /// Can be read when the process has ended with which the session ends.
    pub(super) fn owner(&self) -> Option<BorrowedFd<'_>> {
        self.owner.as_ref().map(OwnedFd::as_fd)
    }
}

impl Ack {
    fn refuse(&mut self, error: &str) {
        self.state = AckState::Refused;
        self.error = Some(error.to_owned());
    }
}

/// The file, unless it is the one with this stamp.
fn read(dir: &PrivateDir, stamp: Option<Stamp>) -> io::Result<Option<(Stamp, Vec<u8>)>> {
    let file = dir.open_file(SESSION)?;
    let found = file.metadata()?;
    let found = (found.ino(), found.mtime(), found.mtime_nsec(), found.size());
    if stamp == Some(found) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(Some((found, bytes)))
}
