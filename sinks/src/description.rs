//! Descriptions of channels and events, for sinks.

use crate::trace_info::TraceInfo;
use std::time::Duration;
use tracepoint_ring::Level;
use tracepoint_ring::channel::{OpenChannel, Policy};
use tracepoint_ring::field::FieldDescriptor;

/// The beginning of a trace.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TraceStart<'a> {
    /// The trace.
    pub trace: &'a TraceInfo,
    /// Its channels. If another process records them, the contexts of their records are only in the metadata.
    pub channels: &'a [ChannelDescription],
    /// The CTF metadata so far, in TSDL. It may contain events; [`Sink::describe`](crate::Sink::describe) is then called for these without metadata.
    pub metadata: &'a str,
    /// Maximum time that a packet which is not full stays in its ring, while the recording process works normally.
    pub packet_delay: Duration,
}

/// Events that may occur in later packets, and new channels.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewEvents<'a> {
    /// The events. If another process records them, their fields are only in the metadata.
    pub events: &'a [EventDescription],
    /// Channels added to the trace during recording, whose packets follow.
    pub channels: &'a [ChannelDescription],
    /// The text to append to the metadata; empty if that contains the events already.
    pub metadata: &'a str,
}

/// A channel, whose packets belong to one stream class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelDescription {
    /// The id of its stream class.
    pub class: u32,
    /// Its name, with which the names of its streams begin.
    pub name: String,
    /// Its policy for a full ring.
    pub policy: Policy,
    /// Maximum size of its packets, in bytes.
    pub packet_size: usize,
    /// The context fields before the fields of each event; may be empty.
    pub context: Vec<FieldDescriptor>,
}

impl ChannelDescription {
    /// Returns the description of `channel`.
    pub fn of(channel: &OpenChannel) -> Self {
        let config = channel.config();
        Self {
            class: channel.class(),
            name: channel.name().to_owned(),
            policy: config.policy(),
            packet_size: config.packet_size(),
            context: config.context_fields(),
        }
    }
}

/// A kind of event in a channel. If another process records it, its fields, documentation and format are only in the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDescription {
    /// The id of its channel's stream class.
    pub class: u32,
    /// Its id in the channel.
    pub id: u16,
    /// Its name in the trace: `provider:name`, with a suffix if events of the same name have different fields.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// Its fields, in the order of the record.
    pub fields: &'static [FieldDescriptor],
    /// Its documentation; may be empty.
    pub doc: &'static str,
    /// Its format string: field names and conversions; may be empty.
    pub format: &'static str,
}
