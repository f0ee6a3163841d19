//! A session as it is applied in this process.

mod acknowledge;
mod end;

use super::SINK_TIMEOUT;
use super::context::Context;
use super::refusals::Refusals;
use super::stamp::{Stamp, read};
use super::watch::{has_ended, watch};
use crate::ack::{Ack, ChannelCounters, Counters, Rotated, RuleAck};
use crate::budget::BudgetWatch;
use crate::event::PlannedEvent;
use crate::private_dir::PrivateDir;
use crate::rule_match::{Matched, Matcher};
use crate::session::{Changed, Ending, Recording, SessionBuilder, SessionError, Status};
use crate::spec::{DrainedBy, RuleError, SessionSpec, State};
use crate::state::{self, Round};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// So many recordings that have not come to their end keep another one from beginning: each has its rings, and channels are few.
const ENDINGS: usize = 3;

/// A session in this process.
#[derive(Debug)]
pub(super) struct ActiveSession {
    name: String,
    stamp: Option<Stamp>,
    spec: Option<SessionSpec>,
    recording: Option<Recording>,
    /// How that fared when it was looked at last.
    seen: Status,
    /// Earlier ones, for which a sink is slow, or blocks, each as it was seen last: what is left for the sink is not with it yet.
    endings: Vec<(Ending, Status)>,
    /// Those of a session that had the same name.
    abandoned: Vec<Ending>,
    /// Until when this look waits for what ends.
    deadline: Instant,
    matcher: Matcher,
    budget: BudgetWatch,
    /// Of recordings that ended.
    before: Counters,
    channels_before: ChannelCounters,
    /// While the session goes on, and if its end is bound to a process's.
    owner: Option<OwnedFd>,
    owner_ended: bool,
    refusals: Refusals,
    /// What sinks said when the recording ended.
    ended: Option<String>,
    /// How many rotations were asked for by now.
    rotations: u64,
    ack: Ack,
}

impl ActiveSession {
    /// The session called `name`, of which nothing is applied yet.
    pub(super) fn new(name: String, context: &Context) -> Self {
        let ack = Ack::new(context.key(), context.info.name.clone());
        Self {
            name,
            stamp: None,
            spec: None,
            recording: None,
            seen: Status::default(),
            endings: Vec::new(),
            abandoned: Vec::new(),
            deadline: Instant::now(),
            matcher: Matcher::default(),
            budget: BudgetWatch::default(),
            before: Counters::default(),
            channels_before: ChannelCounters::default(),
            owner: None,
            owner_ended: false,
            refusals: Refusals::default(),
            ended: None,
            rotations: 0,
            ack,
        }
    }

    /// Looks at the session's file, and does what it says if that is something new. `false` if there is no such session any more, or it
    /// is not for this process. `dir` is its directory. What ends is waited for until `deadline`.
    pub(super) fn look(
        &mut self,
        dir: &PrivateDir,
        context: &Context,
        events_changed: bool,
        deadline: Instant,
    ) -> bool {
        self.deadline = deadline;
        self.owner_ended |= self.owner.as_ref().is_some_and(has_ended);
        // The second for one that cannot be watched.
        let is_over = |spec: &SessionSpec| self.recording.is_some() && spec.is_over();
        let over = (self.owner_ended && self.owner.is_some()) || self.spec.as_ref().is_some_and(is_over);
        self.refusals.read_error = None;
        match read(dir, self.stamp) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.end();
                return false;
            }
            Err(error) => {
                if over {
                    self.end();
                }
                self.refusals.read_error = Some(format!("session.toml cannot be read: {error}"));
            }
            Ok(None) if over || events_changed || self.refusals.is_retry_due() => {
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
                    Ok(spec) => {
                        self.refusals.parsed();
                        self.apply(spec, context);
                    }
                    Err(error) => {
                        if let Some((id, generation)) = SessionSpec::identify(&bytes) {
                            (self.ack.id, self.ack.generation) = (id, generation);
                        }
                        self.refusals.parse_error = Some(format!("session.toml: {error}"));
                    }
                }
            }
        }
        true
    }

    fn apply(&mut self, spec: SessionSpec, context: &Context) {
        if self.ack.id != spec.id {
            self.end();
            self.abandon();
            (self.before, self.channels_before) = (Counters::default(), ChannelCounters::default());
            self.matcher = Matcher::default();
            self.budget = BudgetWatch::default();
            self.ack.outputs.clear();
            (self.ack.over_budget, self.ack.times_over_budget) = (Vec::new(), 0);
            self.ack.state_dumps.clear();
            (self.ack.rotated, self.rotations) = (None, spec.rotations);
            self.owner_ended = false;
        }
        // Watched before it is asked for: one that ends from here on wakes the agent.
        let owner = spec.owner.filter(|_| !self.owner_ended).and_then(watch);
        let is_over = self.owner_ended || spec.is_over();
        self.ack.id.clone_from(&spec.id);
        // While the file is one that is not understood, the earlier one that counts is not what is acknowledged.
        if self.refusals.parse_error.is_none() {
            self.ack.generation = spec.generation;
        }
        self.refusals.clear_apply_error();
        self.ended = None;
        let Matched { mut events, rules, notices } =
            self.matcher.run(&spec, context.key(), &context.info.executable, &context.events);
        self.ack.rules = rules.into_iter().map(|rule| rule.map(rule_ack)).collect();
        self.ack.notices = notices.iter().map(ToString::to_string).collect();
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
        self.ack.events = events.iter().map(|event| &event.name).collect::<BTreeSet<_>>().len();
        let is_taken = !spec.sinks.is_empty() || spec.drain == DrainedBy::Outside;
        if is_over || (spec.state == State::Stopped && is_taken) {
            self.end();
        } else {
            self.record(&spec, &events, context);
        }
        self.rotate(spec.rotations);
        self.owner = owner.filter(|_| !is_over);
        self.spec = Some(spec);
    }

    /// Records these events, or keeps in mind why it does not.
    fn record(&mut self, spec: &SessionSpec, events: &[PlannedEvent], context: &Context) {
        if let Some(recording) = &mut self.recording {
            // Its events can be switched off whatever the channels are.
            if !events.is_empty() && recording.cannot_have(spec) {
                let text = "a session that is drained from outside has the channels with which it began; others count when it records anew";
                self.refusals.fail(text.to_owned(), false);
                return;
            }
            let Changed { more_events, errors } = recording.follow(spec, events);
            recording.dump_state(if more_events { Round::All } else { Round::New });
            self.tell_outputs();
            if !errors.is_empty() {
                let is_for_sinks = errors.iter().any(is_for_sinks);
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                self.refusals.fail(errors.join("; "), is_for_sinks);
            }
            return;
        }
        if events.is_empty() {
            return;
        }
        if self.endings.len() >= ENDINGS {
            self.refusals.fail(
                format!("the sinks of {ENDINGS} earlier recordings block; it begins when one of them goes on"),
                false,
            );
            return;
        }
        let mut started = self.start(spec, events, context);
        // Another process may have taken the name of a file between a look at it and the start.
        if started.is_err() && spec.sinks.iter().any(|sink| sink.kind == "dt" && sink.path.is_file()) {
            started = self.start(spec, events, context);
        }
        if let Err((error, backoff)) = started {
            self.refusals.fail(error, backoff);
        }
    }

    /// Starts the recording; the error is why not, and whether it is the sinks'.
    fn start(&mut self, spec: &SessionSpec, events: &[PlannedEvent], context: &Context) -> Result<(), (String, bool)> {
        let builder = SessionBuilder::from_spec(&self.name, spec.clone())
            .dir(context.sessions.join(&self.name))
            .rings_at_first(context.initial_rings())
            .sink_timeout(SINK_TIMEOUT)
            .trace_name(context.trace_name());
        let started = builder.record(events, context.events.len() + state::EVENTS, Vec::new());
        let mut recording = started.map_err(|error| (error.to_string(), is_for_sinks(&error)))?;
        recording.dump_state(Round::All);
        self.ack.rings = recording.ring_dir().map(std::path::Path::to_owned);
        (self.recording, self.seen) = (Some(recording), Status::default());
        self.tell_outputs();
        Ok(())
    }

    /// Acknowledges where the sinks' traces and servers are; traces of sinks that were removed stay listed.
    fn tell_outputs(&mut self) {
        let outputs = || self.recording.iter().flat_map(Recording::outputs);
        let new: Vec<_> = outputs().filter_map(|output| output.path.clone()).collect();
        self.ack.servers = outputs().filter_map(|output| output.server).collect();
        let known = &mut self.ack.outputs;
        known.extend(new.into_iter().filter(|path| !known.contains(path)).collect::<Vec<_>>());
    }

    /// Has the traces go on in other chunks, if that was asked for since the last time.
    fn rotate(&mut self, asked: u64) {
        let is_new = std::mem::replace(&mut self.rotations, asked) != asked;
        let Some(recording) = self.recording.as_ref().filter(|_| is_new) else { return };
        let (chunks, error) = match recording.rotate() {
            Ok(chunks) => (chunks, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        self.ack.rotated = Some(Rotated { number: asked, chunks, error });
    }

    /// Whether somebody has to look at what it costs.
    pub(super) fn has_budget(&self) -> bool {
        self.recording.is_some() && self.ack.events > 0 && self.spec.as_ref().is_some_and(|spec| spec.budget.is_some())
    }

    /// Looks at what it costs, and switches an event off if that is too much; what is to be told of it, and in which generation.
    pub(super) fn look_at_budget(&mut self, context: &Context) -> Option<(u64, String)> {
        let spec = self.spec.take()?;
        let usage = self.recording.as_ref().and_then(Recording::usage);
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

    /// Can be read when the process has ended with which the session ends.
    pub(super) fn owner(&self) -> Option<BorrowedFd<'_>> {
        self.owner.as_ref().map(OwnedFd::as_fd)
    }
}

/// Whether it is the sinks' fault, who may need room.
const fn is_for_sinks(error: &SessionError) -> bool {
    matches!(error, SessionError::Start(_) | SessionError::Sink { .. })
}

/// What the acknowledgement says of a rule.
fn rule_ack(rule: Result<usize, RuleError>) -> RuleAck {
    rule.map_or_else(|error| RuleAck::Unsupported(error.problem.to_string()), RuleAck::Events)
}
