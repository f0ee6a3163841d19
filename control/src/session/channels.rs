//! The channels of a running session. The first is the default one; the number of each is its stream class, which is never given again.

use super::SessionError;
use std::sync::Arc;
use tracepoint_core::channel::{Channel, ConfigError, MemorySource, OpenChannel};
use tracepoint_sinks::ChannelDescription;

/// All of them: at least one.
#[derive(Debug, Default)]
pub(super) struct Channels {
    open: Vec<Arc<OpenChannel>>,
    next_class: u32,
    /// The names of those that were removed: the files of their streams are called so.
    removed: Vec<String>,
    /// One that is open, and that a sink which blocks could not be told of yet.
    pending: Option<Arc<OpenChannel>>,
}

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
        let mut channels = Self { open: vec![first], next_class: 1, ..Self::default() };
        for config in further {
            match channels.open_beside(config, source()) {
                Ok(channel) => channels.open.push(channel),
                Err(error) => {
                    channels.close();
                    return Err(error);
                }
            }
        }
        Ok(channels)
    }

    fn open_beside(&mut self, config: Channel, source: Box<dyn MemorySource>) -> Result<Arc<OpenChannel>, ConfigError> {
        let channel = self.first().open_beside(config, self.next_class, source)?;
        self.next_class += 1;
        Ok(channel)
    }

    /// Opens one more channel, which [`add`](Self::add) or [`give_up`](Self::give_up) is to follow. A second attempt for the same channel
    /// gets the one that the first has opened.
    pub(super) fn begin_to_add(
        &mut self,
        config: Channel,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<OpenChannel>, SessionError> {
        if self.removed.iter().any(|name| name == config.channel_name()) {
            return Err(SessionError::ChannelNameUsed { name: config.channel_name().to_owned() });
        }
        match self.pending.take() {
            Some(pending) if *pending.config() == config => {
                self.pending = Some(Arc::clone(&pending));
                Ok(pending)
            }
            other => {
                if let Some(other) = other {
                    other.close();
                }
                let channel = self.open_beside(config, source)?;
                self.pending = Some(Arc::clone(&channel));
                Ok(channel)
            }
        }
    }

    /// The channel that was opened is one of the session's.
    pub(super) fn add(&mut self) {
        self.open.extend(self.pending.take());
    }

    /// The channel that was opened is closed again.
    pub(super) fn give_up(&mut self) {
        self.pending.take().iter().for_each(|channel| channel.close());
    }

    /// Takes out the channel that is called so, unless it is the default one.
    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<OpenChannel>> {
        let index = self.open.iter().skip(1).position(|channel| channel.name() == name)?;
        self.removed.push(name.to_owned());
        Some(self.open.remove(index + 1))
    }

    /// The default one.
    pub(super) fn first(&self) -> &Arc<OpenChannel> {
        &self.open[0]
    }

    /// All, the default one first.
    pub(super) fn all(&self) -> &[Arc<OpenChannel>] {
        &self.open
    }

    /// The one that is called so.
    pub(super) fn named(&self, name: &str) -> Option<&Arc<OpenChannel>> {
        self.open.iter().find(|channel| channel.name() == name)
    }

    /// Their names.
    pub(super) fn names(&self) -> Vec<&str> {
        self.open.iter().map(|channel| channel.name()).collect()
    }

    /// What sinks and readers are told of them.
    pub(super) fn descriptions(&self) -> Vec<ChannelDescription> {
        self.open.iter().map(|channel| ChannelDescription::of(channel)).collect()
    }

    /// Closes all. Their subscriptions have ended.
    pub(super) fn close(&self) {
        self.open.iter().chain(&self.pending).for_each(|channel| channel.close());
    }
}
