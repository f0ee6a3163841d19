//! The subscribers of a marker: recorders (a channel) and aggregates, each with an optional filter.

use super::field_range::FieldRange;
use super::field_view::FieldView;
use std::sync::Arc;
use tracepoint_ring::channel::{EventId, OpenChannel, SoleSubscriber};

/// Decides from the fields of an event whether a subscriber gets it.
///
/// Runs in the cold path of the site: it must not block, and should not allocate. An event on which it panics is
/// lost for its subscriber, reason `panicked`.
pub trait Filter: Send + Sync {
    /// Whether the subscriber gets the event.
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
    /// Takes one event, at `time` nanoseconds on the clock of the process (see [`tracepoint_ring::clock`]).
    fn observe(&self, time: u64, event: FieldView<'_>);

    /// Whether [`observe`](Self::observe) uses the time; asked when the aggregate is subscribed, and at each later change of the marker's
    /// subscribers. While no subscriber of a marker does, the clock is not read and `time` is 0. Channels and filters always use it.
    fn needs_time(&self) -> bool {
        true
    }
}

/// What a subscriber does with an event.
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

    /// Restricts an aggregate to the events in `range`, which are tested before a filter is asked. Has no effect on a channel.
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

/// Aggregates without filters that are alone, or beside one channel without contexts and without a filter.
pub(super) enum Observed {
    /// A single one, which gets all events and does not need their time.
    Timeless(Arc<dyn Aggregate>),
    Channel(ObservedChannel),
    /// A single one, which gets all events.
    Sole(Arc<dyn Aggregate>),
    Several(Box<[RangedAggregate]>),
}

/// A channel, which `entries` keeps alive, and the aggregates beside it.
pub(super) struct ObservedChannel {
    pub(super) channel: SoleSubscriber,
    pub(super) aggregates: Box<[RangedAggregate]>,
}

impl Observed {
    fn new(channel: Option<SoleSubscriber>, aggregates: Vec<RangedAggregate>) -> Self {
        match (channel, &aggregates[..]) {
            (Some(channel), _) => Self::Channel(ObservedChannel { channel, aggregates: aggregates.into() }),
            (None, [RangedAggregate { range: None, aggregate }]) if !aggregate.needs_time() => {
                Self::Timeless(Arc::clone(aggregate))
            }
            (None, [RangedAggregate { range: None, aggregate }]) => Self::Sole(Arc::clone(aggregate)),
            (None, _) => Self::Several(aggregates.into()),
        }
    }
}

/// The subscribers of a marker at one time. Immutable.
pub(crate) struct SubscriberList {
    pub(super) entries: Box<[Entry]>,
    /// What the fast path records for: the only subscriber, if it is a channel without contexts and has no filter. If there are aggregates,
    /// this one has no rings, so that events go on in [`deliver_and_leave`](super::deliver_and_leave).
    pub(super) sole: Option<SoleSubscriber>,
    /// The subscribers of such events.
    pub(super) observed: Option<Observed>,
    /// Whether a subscriber uses the time of the event.
    pub(super) needs_time: bool,
}

impl SubscriberList {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let (mut sole, mut observed) = (None, None);
        let (mut recorders, mut aggregates, mut is_plain) = (Vec::new(), Vec::new(), true);
        for Entry { subscriber: Subscriber { consumer, filter }, .. } in &entries {
            is_plain &= filter.is_none();
            match consumer {
                Consumer::Record { channel, id } => recorders.push(SoleSubscriber::new(channel, *id)),
                Consumer::RecordWithContexts { .. } => is_plain = false,
                Consumer::Aggregate(aggregate) => aggregates.push(aggregate.clone()),
            }
        }
        if is_plain && recorders.len() <= 1 {
            sole = recorders.pop();
            if !aggregates.is_empty() {
                observed = Some(Observed::new(sole.replace(SoleSubscriber::without_rings()), aggregates));
            }
        }
        let needs_time = entries.iter().any(|entry| entry.subscriber.needs_time());
        Self { entries: entries.into(), sole, observed, needs_time }
    }
}

impl std::fmt::Debug for SubscriberList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubscriberList").field("entries", &self.entries).finish_non_exhaustive()
    }
}
