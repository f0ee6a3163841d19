//! What the peers of streams have stored: a recorder that streams keeps a list beside the rings (`streams.json`).
//!
//! The packets of a stream are copied out of their ring, and sent. Those that no ring has any more are at the peer, if that has acknowledged them. The
//! list is some time old when its writer is killed, so that it never says too much.

use super::process_source::ProcessSource;
use crate::account::Account;
use crate::take::Journal;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The events that peers have acknowledged.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// The number of each stream, by class and instance.
    events: BTreeMap<(u32, u64), u64>,
    pub(super) peers: Vec<String>,
}

/// A sink that streams.
#[derive(Deserialize)]
struct Entry {
    to: String,
    #[serde(default)]
    acknowledged: Vec<(u32, u64, u64)>,
}

impl Acknowledged {
    /// Reads the list of a process. Without one nothing was streamed.
    pub(super) fn read(source: ProcessSource<'_>, journal: &mut Journal) -> Self {
        let mut all = Self::default();
        let entries = match source.streams() {
            Ok(None) => return all,
            Ok(Some(text)) => serde_json::from_slice::<Vec<Entry>>(&text).map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        match entries {
            Ok(entries) => {
                for Entry { to, acknowledged } in entries {
                    all.peers.push(to);
                    for (class, instance, events) in acknowledged {
                        let most = all.events.entry((class, instance)).or_default();
                        *most = (*most).max(events);
                    }
                }
            }
            Err(reason) => journal.note(format!("what the peers of streams have stored is not known: {reason}")),
        }
        all
    }

    /// How many of the events that are missing by this account the peers have: the first ones of each stream.
    pub(super) fn of_missing(&self, account: &Account) -> u64 {
        let mut sum = 0_u64;
        for channel in &account.channels {
            for stream in &channel.streams {
                let class = u32::try_from(channel.id).unwrap_or(u32::MAX);
                let known = self.events.get(&(class, stream.instance)).copied().unwrap_or_default();
                sum = sum.saturating_add(known.min(stream.sink));
            }
        }
        sum
    }
}
