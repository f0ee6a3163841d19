//! Messages about a sender's trace and streams.

use crate::sink::StreamInfo;
use crate::stream::session::Identity;
use crate::stream::streams::{SentStream, Streams};
use tracepoint_wire::nats::{Publication, Publish};
use tracepoint_wire::stream::{Announce, ClosedStream, Hello, NO_SEQ, SyncEntry, VERSION};

/// Describes the trace of a sender that keeps `resend_buffer` bytes until they are acknowledged.
pub(super) fn publication(identity: &Identity, sync_interval: u32, resend_buffer: u64) -> Publication {
    let Identity { uuid, clock, host, session, process, .. } = identity;
    Publication::new(&Hello {
        version: VERSION.into(),
        udp: false,
        key: *uuid,
        trace: *uuid,
        clock: *clock,
        nonce: [0; 32],
        sync_interval,
        mtu: 0,
        resend_buffer,
        host,
        session,
        process,
    })
}

/// Announces the stream with this number.
pub(super) fn announce(
    of: &Publication,
    identity: &Identity,
    number: usize,
    (info, packet_size): (&StreamInfo, usize),
) -> Publish {
    let Identity { host, session, process, .. } = identity;
    of.announce(Announce {
        request: number as u32,
        class: info.id.class,
        instance: info.id.instance,
        packet_size: u32::try_from(packet_size).unwrap_or(u32::MAX),
        names: [host, session, process, &info.channel, &info.file_name()],
    })
}

/// Promises that everything sent later begins at `time` or later.
pub(super) fn sync(time: u64, streams: &mut Streams) -> Vec<SyncEntry> {
    let entry = |(number, sent): (usize, &SentStream)| SyncEntry {
        handle: number as u64,
        last: sent.last.map_or(NO_SEQ, |last| last.sequence),
        time: sent.promised,
    };
    streams.promise(time).map(entry).collect()
}

/// Describes the end of all streams.
pub(super) fn close(streams: &mut Streams) -> Vec<ClosedStream> {
    let count = streams.count();
    let entry = |number: usize| {
        let sent = streams.get(number);
        let last = sent.last.map_or(NO_SEQ, |last| last.sequence);
        ClosedStream { handle: number as u64, last, packets: sent.packets, events_after: sent.events_after }
    };
    (0..count).map(entry).collect()
}
