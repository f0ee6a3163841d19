//! The messages about the end of a session.

use crate::failure::{Failure, Outcome};
use crate::message;
use std::net::SocketAddr;
use tracepoint_reader::udp::{Counts, SessionEnd};

/// The failure, if there was no session.
pub(super) fn no_server(ending: SessionEnd, server: SocketAddr, counts: &Counts) -> Option<Failure> {
    let reason = match ending {
        SessionEnd::NoServer { refused: true } => {
            format!("no server listens at {server}; start one there, or name another with --server-address")
        }
        SessionEnd::NoServer { .. } => format!(
            "no answer from {server}: there is no trace server, it serves another client, its trace has ended, or a firewall drops \
             the datagrams"
        ),
        SessionEnd::Foreign => format!(
            "the program at {server} is not a trace server: none of its {} datagrams has this protocol",
            counts.datagrams
        ),
        _ => return None,
    };
    Some(Failure::NoServer(reason))
}

/// The name of an ending in JSON.
pub(super) fn ending_name(ending: SessionEnd) -> &'static str {
    match ending {
        SessionEnd::Ended => "ended",
        SessionEnd::Unconfirmed => "unconfirmed",
        SessionEnd::Silent => "silent",
        SessionEnd::Gone => "gone",
        _ => "no_server",
    }
}

/// Prints the counts of events that arrived and that were lost.
pub(super) fn print(ending: SessionEnd, counts: &Counts) -> Outcome {
    message::summary(&summary(counts));
    let reason = match ending {
        SessionEnd::Ended if !counts.any_lost() => return Outcome::Success,
        SessionEnd::Ended => {
            message::error("some messages or events have not arrived");
            return Outcome::Lossy;
        }
        SessionEnd::Unconfirmed => "the server did not confirm the end of the session",
        SessionEnd::Gone => "the server has gone away",
        _ => "the server fell silent",
    };
    message::error(&format!("{reason}: losses at the end of the session are unknown"));
    Outcome::Lossy
}

fn summary(counts: &Counts) -> String {
    let mut parts = vec![format!("{} events in {} datagrams", counts.events, counts.datagrams)];
    let mut part = |count: u64, what: &str| {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    };
    part(counts.lost_events, "events lost on the way");
    part(counts.lost_messages, "messages lost on the way");
    part(counts.lost_metadata, "bytes of metadata lost on the way");
    part(counts.late_messages, "messages late, and counted as lost");
    part(counts.unsent_events, "events lost in the server before they were sent");
    part(counts.duplicates, "duplicates");
    part(counts.reordered, "messages reordered");
    part(counts.corrupted + counts.malformed, "datagrams corrupted or unknown");
    parts.join(", ")
}
