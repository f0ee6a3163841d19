//! Estimates the offset between the trace's clock and the collector's, with an error bound.
//!
//! A probe is sent at t1, received at t2 and answered at t3 by the collector's clock; the answer arrives at t4. If neither direction takes negative
//! time, the offset is within ((t2 - t1) + (t3 - t4)) / 2 ± ((t4 - t1) - (t3 - t2)) / 2. The probe with the smallest bound is kept. Its bound grows
//! with the drift that the two clocks may have had since.

use std::time::{SystemTime, UNIX_EPOCH};
use tracepoint_wire::stream::{ClockReply, NO_BOUND};

/// Maximum drift between two clocks, in parts per million.
const DRIFT_PPM: u64 = 50;

/// The estimate, once there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alignment(Option<Estimate>);

#[derive(Clone, Copy, Debug)]
struct Estimate {
    offset: i64,
    bound: u64,
    /// When the answer arrived.
    at: u64,
}

impl Estimate {
    fn bound_at(&self, now: u64) -> u64 {
        self.bound.saturating_add(now.saturating_sub(self.at) / 1_000_000 * DRIFT_PPM)
    }
}

impl Alignment {
    /// Evaluates the answer to a probe, which arrived at `now` by the trace's clock.
    pub(super) fn observe(&mut self, reply: &ClockReply, now: u64) {
        let [t1, t2, t3, t4] = [reply.sent, reply.received, reply.replied, now].map(i128::from);
        let (offset, width) = (i128::midpoint(t2 - t1, t3 - t4), (t4 - t1) - (t3 - t2));
        let (Ok(offset), Ok(bound)) = (i64::try_from(offset), u64::try_from((width + 1) / 2)) else { return };
        let new = Estimate { offset, bound, at: now };
        self.0 = Some(match self.0 {
            // Two bounds that exclude each other: a clock was set.
            Some(old) if old.offset.abs_diff(offset) > old.bound_at(now).saturating_add(bound) => new,
            Some(old) if old.bound_at(now) < bound => old,
            _ => new,
        });
    }

    /// Returns the offset to add to a time of the trace, and the error bound at `now`.
    pub(super) fn at(&self, now: u64) -> (i64, u64) {
        self.0.map_or((0, NO_BOUND), |estimate| (estimate.offset, estimate.bound_at(now)))
    }

    /// Returns how far the collector's clock is ahead of this host's, in nanoseconds; `now` and `time` are the present times of the trace's and the
    /// host's clock.
    pub(super) fn ahead_of(&self, now: u64, time: SystemTime) -> Option<i64> {
        let time = i128::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()?;
        i64::try_from(i128::from(self.0?.offset) + i128::from(now) - time).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(sent: u64, there: u64, back: u64, offset: u64) -> (ClockReply, u64) {
        let received = sent + there + offset;
        (ClockReply { number: 1, sent, received, replied: received + 10 }, sent + there + 10 + back)
    }

    #[test]
    fn the_true_offset_is_within_the_bound() {
        let mut alignment = Alignment::default();
        assert_eq!(alignment.at(0), (0, NO_BOUND));
        for (there, back) in [(1000, 1000), (900, 100), (0, 5000), (10, 20), (300, 0)] {
            let (reply, now) = reply(1_000_000, there, back, 77_000);
            alignment.observe(&reply, now);
            let (offset, bound) = alignment.at(now);
            assert!(offset.abs_diff(77_000) <= bound, "{there} {back}: {offset} ± {bound}");
        }
        let (offset, bound) = alignment.at(1_000_040);
        assert!(bound <= 16 && offset.abs_diff(77_000) <= 16, "the best one is kept: {offset} ± {bound}");
        assert_eq!(alignment.at(1_000_040 + 1_000_000_000).1, bound + 50_000, "50 us in a second");
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let mut alignment = Alignment::default();
        for offset in [77_000, 5_000_000_000, 1_000] {
            let (reply, now) = reply(1_000_000, 100, 100, offset);
            alignment.observe(&reply, now);
            assert!(alignment.at(now).0.abs_diff(offset.cast_signed()) <= 100);
        }
    }

    #[test]
    fn an_answer_that_cannot_be_is_ignored() {
        let mut alignment = Alignment::default();
        alignment.observe(&ClockReply { number: 1, sent: 100, received: 0, replied: 50 }, 110);
        alignment.observe(&ClockReply { number: 1, sent: 0, received: u64::MAX, replied: u64::MAX }, 0);
        assert_eq!(alignment.at(200), (0, NO_BOUND));
    }
}
