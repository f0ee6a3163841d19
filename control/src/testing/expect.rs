//! What a test says of the events of its session.

use super::{Event, TestSession};
use std::fmt::Write;

/// How many events a failure lists.
const LISTED: usize = 50;

type Condition<'s> = Box<dyn Fn(&Event) -> bool + 's>;

/// Some events of a session, of which something is expected. The calls that end it panic, at the caller's place, if it is not so.
#[must_use = "nothing is expected yet: end with `once`, `times`, `at_least` or `never`"]
pub struct Expectation<'s> {
    session: &'s TestSession,
    name: String,
    conditions: Vec<Condition<'s>>,
}

impl std::fmt::Debug for Expectation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expectation").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'s> Expectation<'s> {
    pub(super) fn new(session: &'s TestSession, name: &str) -> Self {
        Self { session, name: name.to_owned(), conditions: Vec::new() }
    }

    /// Only those of which this holds, too.
    pub fn with(mut self, condition: impl Fn(&Event) -> bool + 's) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// Those events.
    ///
    /// # Panics
    ///
    /// If events were not kept.
    #[track_caller]
    pub fn events(&self) -> Vec<Event> {
        let mut events = self.session.events();
        events.retain(|event| self.speaks_of(event));
        events
    }

    /// There are `count` of them; gives them.
    ///
    /// # Panics
    ///
    /// If it is another number.
    #[track_caller]
    pub fn times(&self, count: usize) -> Vec<Event> {
        let events = self.events();
        assert!(events.len() == count, "{}", self.failure(&events, &format!("{count} times")));
        events
    }

    /// There is one of them; gives it.
    ///
    /// # Panics
    ///
    /// If there is none, or more than one.
    #[track_caller]
    pub fn once(&self) -> Event {
        let mut events = self.events();
        assert!(events.len() == 1, "{}", self.failure(&events, "once"));
        events.remove(0)
    }

    /// There are `count` of them, or more; gives them.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[track_caller]
    pub fn at_least(&self, count: usize) -> Vec<Event> {
        let events = self.events();
        assert!(events.len() >= count, "{}", self.failure(&events, &format!("at least {count} times")));
        events
    }

    /// There is none of them.
    ///
    /// # Panics
    ///
    /// If there is one.
    #[track_caller]
    pub fn never(&self) {
        let events = self.events();
        assert!(events.is_empty(), "{}", self.failure(&events, "never"));
    }

    /// All of them came before all of the others; and there are some of both.
    ///
    /// # Panics
    ///
    /// If it is not so.
    #[track_caller]
    pub fn before(&self, others: &Expectation<'_>) {
        let all = self.session.events();
        let last = all.iter().rposition(|event| self.speaks_of(event));
        let first_other = all.iter().position(|event| others.speaks_of(event));
        let is_so = last.is_some_and(|last| first_other.is_some_and(|first| last < first));
        assert!(is_so, "{} did not come before {}; {}", self.what(), others.what(), listing(&all));
    }

    fn speaks_of(&self, event: &Event) -> bool {
        event.name() == self.name && self.conditions.iter().all(|holds| holds(event))
    }

    fn what(&self) -> String {
        let conditions = if self.conditions.is_empty() { "" } else { " with what was asked" };
        format!("{}{conditions}", self.name)
    }

    fn failure(&self, found: &[Event], expected: &str) -> String {
        let all = self.session.keep.events();
        format!("{} was expected {expected}, and came {} times; {}", self.what(), found.len(), listing(&all))
    }
}

/// What the session has.
pub(super) fn listing(events: &[Event]) -> String {
    let mut text = format!("the session has {} events", events.len());
    for event in events.iter().take(LISTED) {
        let _ = write!(text, "\n  {event}");
    }
    if events.len() > LISTED {
        text.push_str("\n  …");
    }
    text
}
