//! The description of a session, and its start.

use super::plan::plan;
use super::{Notice, Running, Session, SessionError};
use crate::clock;
use crate::drain_thread::DrainThread;
use crate::process::this_process;
use crate::rule::{BadRule, LevelRule, NameRule};
use crate::rundir::RunDir;
use std::fmt;
use std::process;
use std::sync::{Arc, Mutex};
use tracepoint::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_sinks::{ClockInfo, Drain, EventDescription, Sink, TraceInfo};
use uuid::Uuid;

/// The description of a session: what is not said is as [`SessionBuilder::start`] says.
pub struct SessionBuilder {
    name: String,
    rules: Vec<String>,
    level: Option<String>,
    channel: Channel,
    sinks: Vec<Box<dyn Sink>>,
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.name()).collect();
        f.debug_struct("SessionBuilder")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .field("level", &self.level)
            .field("channel", &self.channel)
            .field("sinks", &sinks)
            .finish()
    }
}

impl SessionBuilder {
    pub(super) fn new(name: String) -> Self {
        Self { name, rules: Vec::new(), level: None, channel: Channel::default(), sinks: Vec::new() }
    }

    /// Records the events whose `provider:name` matches `rule`, too. In a rule `*` stands for any characters, `?` for one, and
    /// `[a-m]` for one of a set; a rule that begins with `!` leaves out what it matches, whatever the others say. Without a
    /// rule that takes events in, all are.
    #[must_use]
    pub fn events(mut self, rule: impl Into<String>) -> Self {
        self.rules.push(rule.into());
        self
    }

    /// Of the events that the rules choose, only those of certain levels: `<=info` for those at least as important as info,
    /// `==err`, `>=debug`. The last call counts.
    #[must_use]
    pub fn level(mut self, rule: impl Into<String>) -> Self {
        self.level = Some(rule.into());
        self
    }

    /// The channel whose rings the events go into.
    #[must_use]
    pub fn channel(mut self, channel: Channel) -> Self {
        self.channel = channel;
        self
    }

    /// The rings are in memory of the process alone, and gone when it is killed. At present they always are.
    #[must_use]
    pub fn in_memory(self) -> Self {
        self
    }

    /// One more place to which the events go.
    #[must_use]
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Starts recording: when it returns, the events are on. Unless told otherwise, all events are recorded, through a
    /// [`Channel::default`].
    ///
    /// # Errors
    ///
    /// If the name, a rule or the channel's sizes will not do; if a rule matches nothing, or the rules leave nothing; if there
    /// is no sink, or one cannot begin. Nothing is switched on then.
    pub fn start(self) -> Result<Session, SessionError> {
        check_name(&self.name)?;
        let rules = self.rules.iter().map(|rule| NameRule::parse(rule)).collect::<Result<Vec<_>, _>>();
        let rules = rules.map_err(|BadRule { text, reason }| SessionError::Rule { rule: text, reason })?;
        let level = self.level.as_deref().map(|text| LevelRule::parse(text).map(|rule| (text, rule))).transpose();
        let level = level.map_err(|BadRule { text, reason }| SessionError::Level { rule: text, reason })?;
        if self.sinks.is_empty() {
            return Err(SessionError::NoSink);
        }
        let mut notices = Vec::new();
        let events = plan(&rules, level, &mut notices)?;

        let uuid = Uuid::new_v4().into_bytes();
        let channel = OpenChannel::open(self.channel, uuid, 0, events.len(), Box::new(AnonymousMemory))?;
        // From here on, whoever returns early closes the channel.
        let closing = CloseOnError(Some(Arc::clone(&channel)));
        let mut descriptions = Vec::new();
        let mut subscribers = Vec::new();
        for event in events {
            let id = channel.add_event()?;
            descriptions.push(EventDescription::of(event.markers[0], channel.class(), id, event.name));
            subscribers.extend(event.markers.into_iter().map(|marker| (marker, id)));
        }
        let trace =
            TraceInfo { uuid, name: self.name.clone(), clock: clock_info(&mut notices), process: this_process() };
        let mut drain = Drain::new(trace, vec![Arc::clone(&channel)], self.sinks);
        drain.begin().and_then(|()| drain.describe(&descriptions)).map_err(SessionError::Start)?;
        let drain = Arc::new(Mutex::new(drain));
        let thread = DrainThread::start(Arc::clone(&drain)).map_err(SessionError::Thread)?;
        let subscribers =
            subscribers.into_iter().map(|(marker, id)| (marker, Subscriber::record(Arc::clone(&channel), id)));
        let subscriptions = Subscription::start_all(subscribers)?;
        closing.started();
        let running = Running { subscriptions, thread, drain, channel };
        Ok(Session { name: self.name, process: process::id(), notices, running: Some(running) })
    }
}

/// Closes a channel when a start does not come to its end.
struct CloseOnError(Option<Arc<OpenChannel>>);

impl CloseOnError {
    fn started(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnError {
    fn drop(&mut self) {
        if let Some(channel) = self.0.take() {
            channel.close();
        }
    }
}

fn clock_info(notices: &mut Vec<Notice>) -> ClockInfo {
    let mut not_shared = |reason: String| notices.push(Notice::NoSharedClock { reason });
    match RunDir::find() {
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

fn check_name(name: &str) -> Result<(), SessionError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > 255 {
        "it is longer than 255 bytes"
    } else if name.contains('/') {
        "it has a `/` in it"
    } else if name.contains('\0') {
        "it has a NUL in it"
    } else if name.starts_with('.') {
        "it starts with a dot"
    } else {
        return Ok(());
    };
    Err(SessionError::Name { name: name.to_owned(), reason })
}
