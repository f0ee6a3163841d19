//! Sessions for tests: what a test's own threads fire, in memory, with assertions.
//!
//! Tests of a program run side by side, and a [`Session`](crate::Session) sees the events of the whole process. A [`TestSession`] sees those
//! of the thread that started it, and of threads that [enter](Member::enter) it, and nothing of other tests.
//!
//! ```
//! use tracepoint_control::testing::TestSession;
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
//!     let _here = member.enter();
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
//! An event costs an allocation or more here, and a lock that the session's threads share: this is for tests. An event that comes in the
//! middle of another one's keeping, from a signal handler or an allocator with tracepoints, is not kept; expectations fail then, and say so.

mod event;
mod expect;
mod keep;

pub use event::{Event, Value};
pub use expect::Expectation;
pub use keep::{Here, Member};

use crate::nearest::nearest_names;
use crate::spec::NameRule;
use keep::Keep;
use std::sync::Arc;
use tracepoint_core::Marker;
use tracepoint_core::marker::{Subscriber, Subscription};

/// A recording of what the calling thread fires, and threads that enter it, for a test.
#[derive(Debug)]
pub struct TestSession {
    keep: Arc<Keep>,
    _here: Here,
    _subscriptions: Vec<Subscription>,
}

impl TestSession {
    /// Records the events whose `provider:name` match `rule`, as [`SessionBuilder::events`](crate::SessionBuilder::events) has it, from
    /// here on until it is dropped. There may be several at a time, on one thread too.
    ///
    /// # Panics
    ///
    /// If the rule does not read as one, or matches nothing; if the sites cannot be switched on.
    #[track_caller]
    pub fn start(rule: &str) -> Self {
        let rule = NameRule::parse(rule).unwrap_or_else(|reason| panic!("rule `{rule}`: {reason}"));
        let all: Vec<(String, &'static Marker)> =
            tracepoint_core::markers().map(|marker| (marker.full_name(), marker)).collect();
        let chosen: Vec<_> = all.iter().filter(|(name, _)| rule.matches(name) != rule.excludes()).collect();
        if chosen.is_empty() {
            let nearest = nearest_names(rule.text(), all.iter().map(|(name, _)| name.as_str()));
            panic!("no event matches `{}`; nearest: {}", rule.text(), nearest.join(", "));
        }
        let keep = Arc::<Keep>::default();
        let here = keep.member().enter();
        let subscribers = chosen.iter().map(|(_, marker)| (*marker, Subscriber::aggregate(Arc::clone(&keep) as _)));
        match Subscription::start_all(subscribers) {
            Ok(subscriptions) => Self { keep, _here: here, _subscriptions: subscriptions },
            Err(error) => panic!("the test session does not start: {error}"),
        }
    }

    /// What another thread needs to take part.
    pub fn member(&self) -> Member {
        self.keep.member()
    }

    /// All events so far, in the order in which they were kept: that of each thread, and of threads that wait for each other.
    ///
    /// # Panics
    ///
    /// If events were not kept.
    #[track_caller]
    pub fn events(&self) -> Vec<Event> {
        self.keep.events()
    }

    /// Looks at the events called `name`, a `provider:name`.
    ///
    /// # Panics
    ///
    /// If no event of the program is called so: an expectation that nothing can meet, or nothing can break, is a mistake.
    #[track_caller]
    pub fn expect(&self, name: &str) -> Expectation<'_> {
        Self::check_name(name);
        Expectation::new(self, name)
    }

    /// Events with these names came one after the other; others may have come between.
    ///
    /// # Panics
    ///
    /// If they did not, or if no event of the program is called so.
    #[track_caller]
    pub fn expect_in_order(&self, names: &[&str]) {
        for name in names {
            Self::check_name(name);
        }
        let events = self.events();
        let mut rest = events.iter();
        for (index, name) in names.iter().enumerate() {
            let found = rest.any(|event| event.name() == *name);
            assert!(found, "{name} did not come after {:?}; {}", &names[..index], expect::listing(&events));
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
