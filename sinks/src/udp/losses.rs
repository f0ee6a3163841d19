//! The events that a server could not send.

use std::collections::BTreeMap;
use tracepoint_ring::channel::StreamId;
use tracepoint_wire::udp::Losses;

/// The reason why events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LossReason {
    /// The queue was full.
    Limit,
    /// The queue was full because of a rate limit.
    Rate,
    TooLarge,
    Unreadable,
    /// No client requested them in time.
    Unread,
}

impl LossReason {
    /// Returns the name in the account.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Limit => "udp_limit",
            Self::Rate => "udp_rate",
            Self::TooLarge => "udp_too_large",
            Self::Unreadable => "udp_unreadable",
            Self::Unread => "udp_unread",
        }
    }
}

/// Lost events, by stream and reason.
#[derive(Debug, Default)]
pub(super) struct LostEvents(BTreeMap<(StreamId, LossReason), u64>);

impl LostEvents {
    pub(super) fn add(&mut self, stream: StreamId, reason: LossReason, events: u64) {
        if events > 0 {
            *self.0.entry((stream, reason)).or_default() += events;
        }
    }

    /// Returns the losses of a stream, by reason.
    pub(super) fn of(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.0.iter().filter(|((of, _), _)| *of == stream).map(|((_, why), n)| (why.name(), *n)).collect()
    }

    /// Returns all losses, in the categories of the protocol.
    pub(super) fn by_category(&self) -> Losses {
        let mut losses = Losses::default();
        for ((_, reason), events) in &self.0 {
            *match reason {
                LossReason::Limit | LossReason::Unread => &mut losses.limit,
                LossReason::Rate => &mut losses.rate,
                LossReason::TooLarge => &mut losses.too_large,
                LossReason::Unreadable => &mut losses.failed,
            } += events;
        }
        losses
    }
}
