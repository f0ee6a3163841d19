//! Assertions on the events of a test session.

use super::{Event, TestSession};
use std::fmt::Write;

/// Maximum number of events in a failure message.
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

    /// Returns the selected events.
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

    /// Asserts that exactly `count` events are selected, and returns them.
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

    /// Asserts that exactly one event is selected, and returns it.
    ///
    /// # Panics
    ///
    /// If no event or more than one is selected.
    #[track_caller]
    pub fn once(&self) -> Event {
        let mut events = self.events();
        assert!(events.len() == 1, "{}", self.failure(&events, "once"));
        events.remove(0)
    }

    /// Asserts that at least `count` events are selected, and returns them.
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

    /// Asserts that no event is selected.
    ///
    /// # Panics
    ///
    /// If an event is selected.
    #[track_caller]
    pub fn never(&self) {
        let events = self.events();
        assert!(events.is_empty(), "{}", self.failure(&events, "never"));
    }

    /// Asserts that all selected events precede all of the others, and that both selections have at least one event.
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
