//! The channels of a running session. The first is the default one. A channel's number is its stream class, which is never reused.

use super::SessionError;
use crate::channel_room;
use std::sync::Arc;
use tracepoint_core::channel::{Channel, ConfigError, MemorySource, OpenChannel};
use tracepoint_sinks::ChannelDescription;

/// The open channels: at least one.
#[derive(Debug, Default)]
pub(super) struct Channels {
    open: Vec<Arc<OpenChannel>>,
    next_class: u32,
    /// The names of removed channels: they are not reused, because stream files are named after them.
    removed: Vec<String>,
    /// An open channel that has not been described to the sinks yet, because one of them blocks.
    pending: Option<Arc<OpenChannel>>,
}

impl Channels {
    /// Opens the channels of the trace `uuid`, each for at most `events` different events, in memory from `source`; all or none.
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

    /// Opens a further channel; [`commit_add`](Self::commit_add) or [`abort_add`](Self::abort_add) must follow. A second attempt for the
    /// same channel returns the one that the first attempt opened.
    pub(super) fn begin_add(
        &mut self,
        config: Channel,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<OpenChannel>, SessionError> {
        if self.removed.iter().any(|name| name == config.channel_name()) {
            return Err(SessionError::ChannelNameUsed(config.channel_name().to_owned()));
        }
        match self.pending.take() {
            Some(pending) if *pending.config() == config => {
                self.pending = Some(Arc::clone(&pending));
                Ok(pending)
            }
            other => {
                if let Some(other) = other {
                    channel_room::close(&other);
                }
                let channel = self.open_beside(config, source)?;
                self.pending = Some(Arc::clone(&channel));
                Ok(channel)
            }
        }
    }

    /// Adds the opened channel to the session.
    pub(super) fn commit_add(&mut self) {
        self.open.extend(self.pending.take());
    }

    /// Closes the opened channel.
    pub(super) fn abort_add(&mut self) {
        self.pending.take().iter().for_each(|channel| channel_room::close(channel));
    }

    /// Removes and returns the channel called `name`, unless it is the default one.
    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<OpenChannel>> {
        let index = self.open.iter().skip(1).position(|channel| channel.name() == name)?;
        self.removed.push(name.to_owned());
        Some(self.open.remove(index + 1))
    }

    /// The default channel.
    pub(super) fn first(&self) -> &Arc<OpenChannel> {
        &self.open[0]
    }

    /// All channels, the default one first.
    pub(super) fn all(&self) -> &[Arc<OpenChannel>] {
        &self.open
    }

    /// The channel called `name`.
    pub(super) fn named(&self, name: &str) -> Option<&Arc<OpenChannel>> {
        self.open.iter().find(|channel| channel.name() == name)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.open.iter().map(|channel| channel.name()).collect()
    }

    /// Descriptions of the channels, for sinks and readers.
    pub(super) fn descriptions(&self) -> Vec<ChannelDescription> {
        self.open.iter().map(|channel| ChannelDescription::of(channel)).collect()
    }

    /// Closes all channels. Their subscriptions must have ended.
    pub(super) fn close(&self) {
        self.open.iter().chain(&self.pending).for_each(|channel| channel_room::close(channel));
    }
}
