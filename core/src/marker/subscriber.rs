//! The subscribers of a marker: recorders (a channel) and aggregates, each with an optional filter.

use super::field_range::FieldRange;
use super::field_view::FieldView;
use std::ptr::NonNull;
use std::sync::Arc;
use tracepoint_ring::channel::{EventId, OpenChannel, SoleSubscriber};

/// Decides from the fields of an event whether a subscriber gets it.
///
/// Runs in the cold path of the site: it must not block, and should not allocate. If it panics, the event is
/// lost for its subscriber, reason `panicked`.
pub trait Filter: Send + Sync {
    /// Returns whether the subscriber gets the event.
    fn accept(&self, event: FieldView<'_>) -> bool;

    /// Decides about an event at `time` nanoseconds on the clock of the process. The marker stage calls this method; a filter that also
    /// limits the rate overrides it, to return [`Decision::Suppress`].
    fn decide(&self, time: u64, event: FieldView<'_>) -> Decision {
        let _ = time;
        if self.accept(event) { Decision::Accept } else { Decision::Refuse }
    }
}

/// The decision of a filter about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// The subscriber gets the event.
    Accept,
    /// The filter does not match the event; counted as `filtered`.
    Refuse,
    /// The event exceeds a rate limit; counted as `suppressed`.
    Suppress,
}

/// Reduces events to a summary, such as a count or a histogram, in the thread that fires them.
///
/// Runs in the cold path of the site: it must not block, and should not allocate.
pub trait Aggregate: Send + Sync {
    /// Processes one event, at `time` nanoseconds on the clock of the process (see [`tracepoint_ring::clock`]).
    fn observe(&self, time: u64, event: FieldView<'_>);

    /// Returns whether [`observe`](Self::observe) uses the time. Called when the aggregate is subscribed, and at each later change of the marker's
    /// subscribers. While no subscriber of a marker does, the clock is not read and `time` is 0. Channels and filters always use it.
    fn needs_time(&self) -> bool {
        true
    }
}

/// The action of a subscriber for an event.
#[derive(Clone)]
pub(super) enum Consumer {
    Record {
        channel: Arc<OpenChannel>,
        id: EventId,
    },
    /// As `Record`, in a channel whose records begin with contexts.
    RecordWithContexts {
        channel: Arc<OpenChannel>,
        id: EventId,
    },
    Aggregate(RangedAggregate),
}

/// An aggregate, and the events that it gets: those in the range, or all.
#[derive(Clone)]
pub(super) struct RangedAggregate {
    pub(super) range: Option<FieldRange>,
    pub(super) aggregate: Arc<dyn Aggregate>,
}

/// A subscriber to the events of a marker: a channel or an aggregate, with an optional filter.
#[derive(Clone)]
pub struct Subscriber {
    pub(super) consumer: Consumer,
    pub(super) filter: Option<Arc<dyn Filter>>,
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match &self.consumer {
            Consumer::Record { id, .. } | Consumer::RecordWithContexts { id, .. } => format!("record as {id:?}"),
            Consumer::Aggregate(_) => "aggregate".to_owned(),
        };
        f.debug_struct("Subscriber").field("consumer", &what).field("filter", &self.filter.is_some()).finish()
    }
}

impl Subscriber {
    /// Records the events in `channel`, under an id that the channel assigned to this marker.
    ///
    /// # Panics
    ///
    /// If `channel` did not assign `id`: the id is from another channel.
    pub fn record(channel: Arc<OpenChannel>, id: EventId) -> Self {
        assert!(channel.has_event(id), "the event id was given by another channel");
        let consumer = if channel.has_contexts() {
            Consumer::RecordWithContexts { channel, id }
        } else {
            Consumer::Record { channel, id }
        };
        Self { consumer, filter: None }
    }

    /// Passes the events to `aggregate`.
    pub fn aggregate(aggregate: Arc<dyn Aggregate>) -> Self {
        Self { consumer: Consumer::Aggregate(RangedAggregate { range: None, aggregate }), filter: None }
    }

    /// Restricts an aggregate to the events in `range`; the range is tested before a filter is called. Has no effect on a channel.
    #[must_use]
    pub fn in_range(mut self, range: FieldRange) -> Self {
        if let Consumer::Aggregate(ranged) = &mut self.consumer {
            ranged.range = Some(range);
        }
        self
    }

    fn needs_time(&self) -> bool {
        match &self.consumer {
            Consumer::Aggregate(ranged) => self.filter.is_some() || ranged.aggregate.needs_time(),
            _ => true,
        }
    }

    pub(crate) fn channel(&self) -> Option<&Arc<OpenChannel>> {
        match &self.consumer {
            Consumer::Record { channel, .. } | Consumer::RecordWithContexts { channel, .. } => Some(channel),
            Consumer::Aggregate(_) => None,
        }
    }

    /// Restricts the subscriber to the events that `filter` accepts.
    #[must_use]
    pub fn filter(mut self, filter: Arc<dyn Filter>) -> Self {
        self.filter = Some(filter);
        self
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) subscriber: Subscriber,
    pub(super) ticket: u64,
}

/// The route of an event that the fast path has evaluated and not recorded: see [`marker`](super). Only the full path has filters and contexts.
///
/// `repr` gives it a tag of its own. Otherwise a `bool` inside would be the tag, and take five more instructions to test.
#[repr(usize)]
pub(super) enum Route {
    /// To a channel, which loses the event or records it on the full path.
    Channel(SoleSubscriber),
    /// To an aggregate that gets all events and does not use their time.
    Aggregate(SoleAggregate),
    /// To other aggregates, behind a channel if there is one.
    Aggregates { channel: Option<SoleSubscriber>, needs_time: bool, aggregates: Box<[RangedAggregate]> },
    /// To any subscribers, on the full path.
    Full,
}

/// An aggregate without a filter. The list of subscribers keeps it alive; its address would have to be computed from an `Arc` at each event.
pub(super) struct SoleAggregate(NonNull<dyn Aggregate>);

// SAFETY: points to an aggregate, which is `Send` and `Sync`.
unsafe impl Send for SoleAggregate {}
// SAFETY: as above.
unsafe impl Sync for SoleAggregate {}

impl SoleAggregate {
    #[inline(always)]
    pub(super) fn get(&self) -> &dyn Aggregate {
        // SAFETY: `Route::new` makes this of an entry of the same list. Both are borrowed, and neither changes.
        unsafe { self.0.as_ref() }
    }
}

/// The subscribers of a marker at a point in time. Immutable.
pub(crate) struct SubscriberList {
    pub(super) entries: Box<[Entry]>,
    /// The subscriber of the fast path: the only subscriber, if it is a channel without contexts and without a filter. If there are aggregates,
    /// it has no rings, so that events continue in [`deliver_and_exit`](super::deliver_and_exit).
    pub(super) sole: Option<SoleSubscriber>,
    pub(super) route: Route,
    /// True if a subscriber uses the time of the event.
    pub(super) needs_time: bool,
}

impl SubscriberList {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let needs_time = entries.iter().any(|entry| entry.subscriber.needs_time());
        let route = Route::new(&entries, needs_time);
        let sole = match &route {
            Route::Channel(channel) => Some(*channel),
            Route::Aggregate(_) | Route::Aggregates { .. } => Some(SoleSubscriber::without_rings()),
            Route::Full => None,
        };
        Self { entries: entries.into(), sole, route, needs_time }
    }
}

impl Route {
    fn new(entries: &[Entry], needs_time: bool) -> Self {
        let (mut channels, mut aggregates) = (Vec::new(), Vec::new());
        for Entry { subscriber: Subscriber { consumer, filter }, .. } in entries {
            match consumer {
                _ if filter.is_some() => return Self::Full,
                Consumer::Record { channel, id } => channels.push(SoleSubscriber::new(channel, *id)),
                Consumer::RecordWithContexts { .. } => return Self::Full,
                Consumer::Aggregate(aggregate) => aggregates.push(aggregate.clone()),
            }
        }
        match (&channels[..], &aggregates[..]) {
            ([channel], []) => Self::Channel(*channel),
            ([], [RangedAggregate { range: None, aggregate }]) if !needs_time => {
                Self::Aggregate(SoleAggregate(NonNull::from(aggregate.as_ref())))
            }
            ([] | [_], [_, ..]) => {
                Self::Aggregates { channel: channels.pop(), needs_time, aggregates: aggregates.into() }
            }
            _ => Self::Full,
        }
    }
}

impl std::fmt::Debug for SubscriberList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubscriberList").field("entries", &self.entries).finish_non_exhaustive()
    }
}
