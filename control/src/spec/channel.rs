//! The channel of a session, and the bounds on what it takes.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use tracepoint::channel::{Channel, Policy};

/// The channel of a session: as [`Channel`] has it, in a form that can be written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ChannelSpec {
    /// What happens when a ring is full: `discard`, `overwrite` or `wait`.
    pub policy: String,
    /// Bytes of a thread's ring.
    pub ring_size: usize,
    /// Into how many packets it is cut.
    pub packets: usize,
    /// Rings that are kept ready.
    pub spares: usize,
    /// How many rings a process has at most; as the policy has it if it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rings: Option<usize>,
    /// How long an event waits for room at most, under `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u32>,
}

impl Default for ChannelSpec {
    fn default() -> Self {
        let policy = Policy::Discard.name().to_owned();
        Self { policy, ring_size: 1 << 20, packets: 8, spares: 16, max_rings: None, patience_ms: None }
    }
}

impl ChannelSpec {
    /// A flight recorder with rings of so many bytes.
    pub fn overwrite(ring_size: usize) -> Self {
        Self { policy: Policy::Overwrite.name().to_owned(), ring_size, ..Self::default() }
    }

    /// Whether such a policy is known. Sizes are checked where the channel is opened.
    pub(super) fn check(&self) -> Result<(), String> {
        let known = [Policy::Discard, Policy::Overwrite, Policy::Wait].map(Policy::name);
        if known.contains(&self.policy.as_str()) {
            return Ok(());
        }
        Err(format!("the policy `{}` is not known; there are {}", self.policy, known.join(", ")))
    }

    /// The channel that it describes.
    pub(crate) fn channel(&self) -> Channel {
        let patience = Duration::from_millis(self.patience_ms.unwrap_or(50).into());
        let channel = match self.policy.as_str() {
            "overwrite" => Channel::overwrite(self.ring_size),
            "wait" => Channel::wait(self.ring_size, patience),
            _ => Channel::discard(self.ring_size),
        };
        let channel = channel.packets(self.packets).spares(self.spares);
        self.max_rings.map_or(channel.clone(), |most| channel.max_rings(most))
    }
}

/// Bounds on what a session takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of rings of all processes together.
    pub memory_cap: u64,
    /// Of how many processes that died the rings are kept.
    pub keep_dead: usize,
    /// How many bytes of rings of processes that died are kept.
    pub keep_dead_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_cap: 1 << 30, keep_dead: 8, keep_dead_bytes: 1 << 30 }
    }
}
