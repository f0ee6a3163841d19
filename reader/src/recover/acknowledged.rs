//! Events that the peers of streams have stored: a streaming recorder keeps a list next to the rings (`streams.json`).
//!
//! Packets are copied out of their ring and sent. A packet that is in no ring any more is at the peer if the peer has acknowledged it. When the
//! writer of the list is killed, the list is slightly out of date, so it never claims too much.

use super::process_source::ProcessSource;
use crate::account::Account;
use crate::take::Journal;
use serde::Deserialize;
use std::collections::HashMap;

/// The events acknowledged by peers.
#[derive(Debug, Default)]
pub(super) struct AcknowledgedEvents {
    /// The number of acknowledged events of each stream, by class and instance.
    events: HashMap<(u32, u64), u64>,
    pub(super) peers: Vec<String>,
}

/// A streaming sink.
#[derive(Deserialize)]
struct Entry {
    to: String,
    #[serde(default)]
    acknowledged: Vec<(u32, u64, u64)>,
}

impl AcknowledgedEvents {
    /// Reads the list of a process. Without a list, nothing was streamed.
    pub(super) fn read(source: ProcessSource<'_>, journal: &mut Journal) -> Self {
        let mut all = Self::default();
        let entries = match source.streams() {
            Ok(None) => return all,
            Ok(Some(text)) => serde_json::from_slice::<Vec<Entry>>(&text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
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

    /// The number of events missing in this account that peers have: the first ones of each stream.
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
