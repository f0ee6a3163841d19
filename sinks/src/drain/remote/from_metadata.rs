//! Describes a trace, its channels and events from the metadata that its process wrote.

use crate::account::Policy;
use crate::description::{ChannelDescription, EventDescription};
use crate::trace_info::{ClockInfo, ProcessInfo, TraceInfo};
use tracepoint_reader::Metadata;
use tracepoint_reader::internal::ChannelInfo;
use tracepoint_reader::metadata::EnvValue;
use tracepoint_ring::Level;
use tracepoint_ring::channel;

/// Returns the trace.
pub(super) fn trace(metadata: &Metadata, uuid: [u8; 16]) -> TraceInfo {
    let text = |name: &str| match metadata.env_value(name) {
        Some(EnvValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let pid = match metadata.env_value("vpid") {
        Some(EnvValue::Integer(pid)) => u32::try_from(*pid).unwrap_or(0),
        _ => 0,
    };
    let clock = metadata.clocks().first().filter(|clock| clock.name == "monotonic");
    let clock = clock.map(|clock| ClockInfo { uuid: clock.uuid, offset: clock.nanoseconds(0) });
    let process = ProcessInfo {
        pid,
        name: text("procname"),
        executable: text("executable"),
        hostname: text("hostname"),
        modules: metadata.modules().map(str::to_owned).collect(),
        kernel: text("kernel_release"),
    };
    TraceInfo { uuid, name: text("trace_name"), clock: clock.unwrap_or_default(), process }
}

/// Returns the channels. Their contexts are only in the metadata.
pub(super) fn channels(found: &[ChannelInfo]) -> Vec<ChannelDescription> {
    let describe = |channel: &ChannelInfo| ChannelDescription {
        class: channel.class,
        name: channel.name.clone(),
        policy: match channel.policy {
            Policy::Overwrite => channel::Policy::Overwrite,
            Policy::Wait => channel::Policy::Wait,
            _ => channel::Policy::Discard,
        },
        packet_size: usize::try_from(channel.packet_size).unwrap_or(usize::MAX),
        context: Vec::new(),
    };
    found.iter().map(describe).collect()
}

/// Returns the events that were not in the metadata `before`. Their fields are only in the metadata.
pub(super) fn events(metadata: &Metadata, before: Option<&Metadata>) -> Vec<EventDescription> {
    let is_new = |class: u64, id: u64| {
        before.and_then(|before| before.stream(class)).is_none_or(|class| !class.events.contains_key(&id))
    };
    let events = metadata.streams().flat_map(|class| class.events.values());
    let new = events.filter(|event| is_new(event.stream_id, event.id));
    new.filter_map(|event| {
        let level = Level::ALL.into_iter().find(|level| Some(i64::from(*level as u8)) == event.loglevel);
        Some(EventDescription {
            class: u32::try_from(event.stream_id).ok()?,
            id: u16::try_from(event.id).ok()?,
            name: event.name.clone(),
            level: level.unwrap_or_default(),
            fields: &[],
            doc: "",
            format: "",
        })
    })
    .collect()
}
