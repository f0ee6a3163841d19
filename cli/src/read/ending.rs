//! How a session ended, and what is said of it.

use crate::failure::{self, Failure, Outcome};
use std::net::SocketAddr;
use tracepoint_reader::udp::{Counts, Ending};

/// Why there was no session, if there was none.
pub(super) fn no_server(ending: Ending, server: SocketAddr, counts: &Counts) -> Option<Failure> {
    let reason = match ending {
        Ending::NoServer { refused: true } => {
            format!("nobody listens at {server}; start a server there, or name another one with --server-address")
        }
        Ending::NoServer { .. } => format!(
            "nobody answers at {server}: there is no trace server, it serves another client, its trace has ended, or a firewall is \
             in between"
        ),
        Ending::Foreign => format!(
            "what answers at {server} is no trace server: none of its {} datagrams is of this protocol",
            counts.datagrams
        ),
        _ => return None,
    };
    Some(Failure::NoServer(reason))
}

/// The name of an ending in JSON.
pub(super) fn name(ending: Ending) -> &'static str {
    match ending {
        Ending::Ended => "ended",
        Ending::Unconfirmed => "unconfirmed",
        Ending::Silent => "silent",
        Ending::Gone => "gone",
        _ => "no_server",
    }
}

/// Says what came and what did not.
pub(super) fn tell(ending: Ending, counts: &Counts) -> Outcome {
    anstream::eprintln!("{}", summary(counts));
    let reason = match ending {
        Ending::Ended if !counts.any_lost() => return Outcome::Well,
        Ending::Ended => {
            failure::say_error("not all that was sent has come");
            return Outcome::Lossy;
        }
        Ending::Unconfirmed => "the server did not say that the session has ended",
        Ending::Gone => "the server has gone",
        _ => "nothing came from the server any more",
    };
    failure::say_error(&format!("{reason}: what was lost at the end is not known"));
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
    part(counts.unsent_events, "events lost by the server before they were sent");
    part(counts.duplicates, "duplicates");
    part(counts.reordered, "messages put right in their order");
    part(counts.corrupted + counts.malformed, "datagrams spoilt, or of no known kind");
    parts.join(", ")
}
