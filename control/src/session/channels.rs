//! The channels of a running session. The first is the default one; the number of each is its stream class.

use std::sync::Arc;
use tracepoint_core::channel::{Channel, ConfigError, MemorySource, OpenChannel};
use tracepoint_sinks::ChannelDescription;

/// All of them: at least one.
#[derive(Debug, Default)]
pub(super) struct Channels(Vec<Arc<OpenChannel>>);

impl Channels {
    /// Opens them as those of the trace `uuid`, each for at most `events` different ones, over memory from `source`; all, or none.
    pub(super) fn open(
        default: Channel,
        further: Vec<Channel>,
        uuid: [u8; 16],
        events: usize,
        source: impl Fn() -> Box<dyn MemorySource>,
    ) -> Result<Self, ConfigError> {
        let first = OpenChannel::open(default, uuid, 0, events, source())?;
        let mut channels = Self(vec![Arc::clone(&first)]);
        for (class, config) in (1..).zip(further) {
            match first.open_beside(config, class, source()) {
                Ok(channel) => channels.0.push(channel),
                Err(error) => {
                    channels.close();
                    return Err(error);
                }
            }
        }
        Ok(channels)
    }

    /// The default one.
    pub(super) fn first(&self) -> &Arc<OpenChannel> {
        &self.0[0]
    }

    /// All, the default one first.
    pub(super) fn all(&self) -> &[Arc<OpenChannel>] {
        &self.0
    }

    /// The one that is called so.
    pub(super) fn named(&self, name: &str) -> Option<&Arc<OpenChannel>> {
        self.0.iter().find(|channel| channel.name() == name)
    }

    /// What they are called.
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|channel| channel.name()).collect()
    }

    /// What sinks and readers are told of them.
    pub(super) fn descriptions(&self) -> Vec<ChannelDescription> {
        self.0.iter().map(|channel| ChannelDescription::of(channel)).collect()
    }

    /// Closes all. Their subscriptions have ended.
    pub(super) fn close(&self) {
        self.0.iter().for_each(|channel| channel.close());
    }
}
