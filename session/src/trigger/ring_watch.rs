//! The conditions `ring-full` and `lost`, detected by the counters of a session's rings.
//!
//! The thread reads them at intervals. It may miss a ring that was full for less than an interval. It does not miss losses, because these
//! are counted.

use std::process;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};
use tracepoint_core::channel::OpenChannel;
use tracepoint_session_io::trigger::{Detail, Occurrence};
use tracepoint_session_spec::TriggerCondition;

/// Interval at which rings are checked for `ring-full`.
const FULL: Duration = Duration::from_millis(20);
/// Interval at which their losses are checked.
const LOST: Duration = Duration::from_millis(100);
/// Time without a loss after which the next loss is a new occurrence.
const QUIET: Duration = Duration::from_secs(1);

/// The rings of a session.
#[derive(Debug)]
pub(super) struct RingWatch {
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    channels: Vec<Weak<OpenChannel>>,
    /// True if a ring was above the threshold at the last check.
    is_above: bool,
    /// The losses at the last check.
    lost: u64,
    /// The time at which they last increased.
    lost_at: Option<Instant>,
}

impl RingWatch {
    pub(super) fn new(when: &TriggerCondition, channels: &[Weak<OpenChannel>]) -> Self {
        let lost = lost(channels);
        let state = State { channels: channels.to_vec(), is_above: false, lost, lost_at: None };
        Self { interval: if *when == TriggerCondition::Lost { LOST } else { FULL }, state: Mutex::new(state) }
    }

    /// Replaces the channels of the session.
    pub(super) fn follow(&self, channels: &[Weak<OpenChannel>]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = state.channels.len() == channels.len()
            && state.channels.iter().zip(channels).all(|(one, other)| one.ptr_eq(other));
        if !is_same {
            (state.channels, state.lost) = (channels.to_vec(), lost(channels));
        }
    }

    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Checks the rings; returns an occurrence if the condition has begun to hold.
    pub(super) fn look(&self, when: &TriggerCondition) -> Option<Occurrence> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, number) = if let TriggerCondition::RingFull(percent) = when {
            let fullest = state.channels.iter().filter_map(Weak::upgrade).map(|channel| channel.fullest()).max();
            let fullest = fullest.unwrap_or(0);
            let was_above = std::mem::replace(&mut state.is_above, fullest >= (*percent).into());
            (!was_above && state.is_above).then_some(("trigger_percent", fullest.into()))
        } else {
            let lost = lost(&state.channels);
            let new = lost.saturating_sub(std::mem::replace(&mut state.lost, lost));
            let has_begun = state.lost_at.is_none_or(|at| at.elapsed() >= QUIET);
            if new > 0 {
                state.lost_at = Some(Instant::now());
            }
            (new > 0 && has_begun).then_some(("trigger_lost", new))
        }?;
        let mut occurrence = Occurrence::new(when, process::id(), SystemTime::now());
        occurrence.add(name, Detail::Number(number));
        Some(occurrence)
    }
}

fn lost(channels: &[Weak<OpenChannel>]) -> u64 {
    channels.iter().filter_map(Weak::upgrade).map(|channel| channel.discarded()).sum()
}
