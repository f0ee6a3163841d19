//! Sessions for tests: record the events of a test's own threads in memory, and assert on them.
//!
//! Tests of a program run concurrently, and a [`Session`](crate::Session) sees the events of the whole process. A [`TestSession`] sees
//! only the events of the thread that started it, and of threads that [enter](Member::enter) it.
//!
//! ```
//! use tracepoint_session::testing::TestSession;
//!
//! tracepoint::define_trace! {
//!     provider = "shop";
//!     pub paid(cents: u64, by: &str) { cents: u64 = cents, by: str = by }
//!     pub refused(reason: &str) { reason: str = reason }
//! }
//!
//! let session = TestSession::start("shop:*");
//! tracepoint::trace!(paid(1250, "card"));
//! let member = session.member();
//! std::thread::spawn(move || {
//!     let _thread = member.enter();
//!     tracepoint::trace!(paid(5, "cash"));
//! })
//! .join()
//! .unwrap();
//!
//! session.expect("shop:paid").with(|event| event["cents"] == 1250 && event["by"] == "card").once();
//! session.expect("shop:paid").times(2);
//! session.expect("shop:refused").never();
//! ```
//!
//! An event costs at least one allocation, and a lock shared by the session's threads: use this in tests only. An event that interrupts
//! the storing of another one, from a signal handler or a traced allocator, is missed; assertions then fail and say so.

mod event;
mod expect;
mod keep;

pub use event::{Event, Value};
pub use expect::Expectation;
pub use keep::{Member, ThreadGuard};

use keep::KeptEvents;
use std::sync::Arc;
use tracepoint_core::Marker;
use tracepoint_core::internal::nearest_names;
use tracepoint_core::marker::{Subscriber, Subscription};
use tracepoint_session_spec::NameRule;

/// Records the events of the calling thread, and of threads that enter it, for a test.
#[derive(Debug)]
pub struct TestSession {
    kept: Arc<KeptEvents>,
    _thread: ThreadGuard,
    _subscriptions: Vec<Subscription>,
}

impl TestSession {
    /// Records the events whose `provider:name` matches `rule`, with the syntax of
    /// [`SessionBuilder::events`](crate::SessionBuilder::events), until the session is dropped. Several may exist at the same time, even on
    /// one thread.
    ///
    /// # Panics
    ///
    /// If the rule is invalid or matches no event; if the sites cannot be enabled.
    #[track_caller]
    pub fn start(rule: &str) -> Self {
        let rule = NameRule::parse(rule).unwrap_or_else(|reason| panic!("rule `{rule}`: {reason}"));
        let all: Vec<(String, &'static Marker)> =
            tracepoint_core::markers().map(|marker| (marker.full_name(), marker)).collect();
        let matching: Vec<_> = all.iter().filter(|(name, _)| rule.matches(name) != rule.excludes()).collect();
        if matching.is_empty() {
            let nearest = nearest_names(rule.text(), all.iter().map(|(name, _)| name.as_str()));
            panic!("no event matches `{}`; nearest: {}", rule.text(), nearest.join(", "));
        }
        let kept = Arc::<KeptEvents>::default();
        let thread = kept.member().enter();
        let subscribers = matching.iter().map(|(_, marker)| (*marker, Subscriber::aggregate(Arc::clone(&kept) as _)));
        match Subscription::start_all(subscribers) {
            Ok(subscriptions) => Self { kept, _thread: thread, _subscriptions: subscriptions },
            Err(error) => panic!("cannot start the test session: {error}"),
        }
    }

    /// Returns the handle by which other threads enter the session.
    pub fn member(&self) -> Member {
        self.kept.member()
    }

    /// Returns all events so far, in the order of storing: the order of each thread, and of threads that synchronise with each other.
    ///
    /// # Panics
    ///
    /// If events were missed.
    #[track_caller]
    pub fn events(&self) -> Vec<Event> {
        self.kept.events()
    }

    /// Starts an assertion on the events called `name`, a `provider:name`.
    ///
    /// # Panics
    ///
    /// If the program has no event of this name: such an assertion would always pass or always fail.
    #[track_caller]
    pub fn expect(&self, name: &str) -> Expectation<'_> {
        Self::check_name(name);
        Expectation::new(self, name)
    }

    /// Asserts that events with these names occurred in this order; other events may lie in between.
    ///
    /// # Panics
    ///
    /// If they did not, or if the program has no event with one of these names.
    #[track_caller]
    pub fn expect_in_order(&self, names: &[&str]) {
        for name in names {
            Self::check_name(name);
        }
        let events = self.events();
        let mut rest = events.iter();
        for (index, name) in names.iter().enumerate() {
            let found = rest.any(|event| event.name() == *name);
            assert!(found, "{name} did not occur after {:?}; {}", &names[..index], expect::listing(&events));
        }
    }

    #[track_caller]
    fn check_name(name: &str) {
        let names: Vec<String> = tracepoint_core::markers().map(Marker::full_name).collect();
        if !names.iter().any(|known| known == name) {
            let nearest = nearest_names(name, names.iter().map(String::as_str));
            panic!("no event is called `{name}`; nearest: {}", nearest.join(", "));
        }
    }
}
