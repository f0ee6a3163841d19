//! Assertions on the events of a test session.

use super::{Event, TestSession};
use std::fmt::Write;

/// Number of events that a failure message lists.
const LISTED: usize = 50;

type Condition<'s> = Box<dyn Fn(&Event) -> bool + 's>;

/// An assertion on some events of a session. Its final call panics with the caller's location if the assertion does not hold.
#[must_use = "asserts nothing yet: end with `once`, `times`, `at_least` or `never`"]
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

    /// Restricts it to events that satisfy `condition`.
    pub fn with(mut self, condition: impl Fn(&Event) -> bool + 's) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// The selected events.
    ///
    /// # Panics
    ///
    /// If events were missed.
    #[track_caller]
    pub fn events(&self) -> Vec<Event> {
        let mut events = self.session.events();
        events.retain(|event| self.selects(event));
        events
    }

    /// Asserts that there are exactly `count` of them, and returns them.
    ///
    /// # Panics
    ///
    /// If the number differs.
    #[track_caller]
    pub fn times(&self, count: usize) -> Vec<Event> {
        let events = self.events();
        assert!(events.len() == count, "{}", self.failure(&events, &format!("{count} times")));
        events
    }

    /// Asserts that there is exactly one of them, and returns it.
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

    /// Asserts that there are at least `count` of them, and returns them.
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

    /// Asserts that there is none of them.
    ///
    /// # Panics
    ///
    /// If there is one.
    #[track_caller]
    pub fn never(&self) {
        let events = self.events();
        assert!(events.is_empty(), "{}", self.failure(&events, "never"));
    }

    /// Asserts that all of them precede all of the others, and that there is at least one of both.
    ///
    /// # Panics
    ///
    /// If that does not hold.
    #[track_caller]
    pub fn before(&self, others: &Expectation<'_>) {
        let all = self.session.events();
        let last = all.iter().rposition(|event| self.selects(event));
        let first_other = all.iter().position(|event| others.selects(event));
        let holds = last.is_some_and(|last| first_other.is_some_and(|first| last < first));
        assert!(holds, "{} did not precede {}; {}", self.what(), others.what(), listing(&all));
    }

    fn selects(&self, event: &Event) -> bool {
        event.name() == self.name && self.conditions.iter().all(|holds| holds(event))
    }

    fn what(&self) -> String {
        let conditions = if self.conditions.is_empty() { "" } else { " satisfying the conditions" };
        format!("{}{conditions}", self.name)
    }

    fn failure(&self, found: &[Event], expected: &str) -> String {
        let all = self.session.kept.events();
        format!("{}: expected {expected}, found {} times; {}", self.what(), found.len(), listing(&all))
    }
}

/// Lists the events of the session.
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
