//! Rule R: compares the chunks of a trace.

use super::Check;
use super::balance::FileCounts;
use crate::account::{Account, ChannelAccount, PriorCounts, RemovedChunks};
use crate::chunk::root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A directory with an account, and its scan.
pub(super) struct Part {
    pub(super) directory: PathBuf,
    pub(super) account: Account,
    pub(super) found: FileCounts,
}

/// Applies rule R, and rule O to all chunks together, to the traces below `path` that consist of chunks.
pub(super) fn check_chunks(path: &Path, parts: Vec<Part>, checks: &mut Vec<Check>) {
    let mut traces: BTreeMap<(PathBuf, String), Vec<Part>> = BTreeMap::new();
    for part in parts {
        let above = root(&part.directory);
        // A chunk that is verified alone is not compared with the others.
        if part.account.chunk.is_some() && path != part.directory {
            traces.entry((above.to_owned(), part.account.trace_uuid.clone())).or_default().push(part);
        }
    }
    for ((above, _), mut chunks) in traces {
        chunks.sort_by_key(|part| number(&part.account));
        Chunks { subject: above.display().to_string(), parts: &chunks, checks }.run();
    }
}

fn number(account: &Account) -> u64 {
    account.chunk.as_ref().map_or(0, |chunk| chunk.number)
}

fn is_shared(account: &Account) -> bool {
    account.chunk.as_ref().is_some_and(|chunk| chunk.shared)
}

struct Chunks<'a> {
    subject: String,
    /// The chunks, sorted by number.
    parts: &'a [Part],
    checks: &'a mut Vec<Check>,
}

impl Chunks<'_> {
    fn equal<L, R>(&mut self, rule: char, compares: &'static str, left: &L, right: &R)
    where
        L: PartialEq<R> + ToString,
        R: ToString,
    {
        let sides = (left.to_string(), right.to_string());
        self.checks.push(Check::new(rule, &self.subject, compares, sides, left == right));
    }

    fn run(mut self) {
        let [first, .., last] = self.parts else {
            if let [only] = self.parts {
                self.ends(only, only);
            }
            return;
        };
        self.ends(first, last);
        for pair in self.parts.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let next = number(&before.account).saturating_add(1);
            if is_shared(&before.account) && number(&after.account) > next {
                continue;
            }
            self.equal('R', "the number of the next chunk", &number(&after.account), &next);
            let left = contradiction(before, after).unwrap_or_else(|| "none".to_owned());
            self.equal('R', "streams that do not go on where they ended = none", &left, &"none");
        }
    }

    /// No chunk is missing except the removed ones.
    fn ends(&mut self, first: &Part, last: &Part) {
        let chunk = last.account.chunk.as_ref();
        let is_last = chunk.is_some_and(|chunk| chunk.last);
        let word = |is_last| if is_last { "the end of the trace" } else { "one of those before" };
        let is_end = is_last || chunk.is_some_and(|chunk| chunk.detached || chunk.shared);
        self.equal('R', "the last chunk = the end of the trace", &word(is_end), &word(true));
        if !is_last {
            return;
        }
        let removed = last.account.chunk.as_ref().map(|chunk| chunk.removed).unwrap_or_default();
        self.removed(first, removed);
        for channel in &last.account.channels {
            self.decoded(first, channel);
        }
    }

    fn removed(&mut self, first: &Part, removed: RemovedChunks) {
        let before = first.account.channels.iter().flat_map(|channel| &channel.streams).map(|stream| stream.before);
        let (packets, events) = before.fold((0_u128, 0_u128), |(packets, events), before| {
            (packets + u128::from(before.packets), events + u128::from(before.written))
        });
        let chunks = number(&first.account).saturating_sub(1);
        if is_shared(&first.account) && chunks > removed.chunks {
            return;
        }
        self.equal('R', "chunks before the first = removed", &chunks, &removed.chunks);
        self.equal('R', "packets before the first chunk = removed", &packets, &removed.packets.into());
        self.equal('R', "events before the first chunk = removed", &events, &removed.events.into());
    }

    /// Number of events of a channel in chunks between these that are at other collectors.
    fn elsewhere(&self, channel: u64) -> i128 {
        let streams = |part: &Part| {
            let of = part.account.channels.iter().filter(move |other| other.id == channel);
            of.flat_map(|channel| channel.streams.clone()).collect::<Vec<_>>()
        };
        let mut events = 0;
        for pair in self.parts.windows(2).filter(|pair| is_shared(&pair[0].account)) {
            let ends: BTreeMap<u64, u64> = streams(&pair[0]).iter().map(|it| (it.instance, it.written)).collect();
            for stream in streams(&pair[1]) {
                let end = ends.get(&stream.instance).copied().unwrap_or_default();
                events += i128::from(stream.before.written) - i128::from(end);
            }
        }
        events
    }

    /// Rule O over all chunks.
    fn decoded(&mut self, first: &Part, channel: &ChannelAccount) {
        let in_first = first.account.channels.iter().filter(|other| other.id == channel.id);
        let removed: i128 = in_first.flat_map(|other| &other.streams).map(|s| i128::from(s.before.written)).sum();
        let removed = removed + self.elsewhere(channel.id);
        let after_ring: i128 =
            channel.streams.iter().map(|s| i128::from(s.overwritten) + i128::from(s.sink)).sum::<i128>() + removed;
        let mut missing = 0_i128;
        for event in &channel.events {
            let found = self.parts.iter().filter_map(|part| part.found.decoded.get(&(channel.id, event.id)));
            let decoded: u64 = found.sum();
            missing += i128::from(event.recorded) - i128::from(decoded);
            let (compares, pass) = if after_ring == 0 {
                ("events decoded in all chunks = recorded", decoded == event.recorded)
            } else {
                ("events decoded in all chunks, at most recorded", decoded <= event.recorded)
            };
            let subject = format!("{} in {}", event.name, channel.name);
            self.checks.push(Check::new('O', subject, compares, (decoded, event.recorded), pass));
        }
        self.equal('O', "recorded and not decoded in any chunk = overwritten + sink + removed", &missing, &after_ring);
    }
}

/// The reason why a chunk does not continue the previous one.
fn contradiction(before: &Part, after: &Part) -> Option<String> {
    let mut ends: BTreeMap<(u64, u64), PriorCounts> = BTreeMap::new();
    for channel in &before.account.channels {
        for stream in &channel.streams {
            let mut end = PriorCounts::default();
            (end.recorded, end.packets) = (stream.recorded, stream.packets);
            (end.written, end.discarded) = (stream.written, stream.discarded);
            ends.insert((channel.id, stream.instance), end);
        }
    }
    for channel in &after.account.channels {
        for stream in &channel.streams {
            let key = (channel.id, stream.instance);
            let name = format!("{}, instance {}", channel.name, stream.instance);
            if ends.get(&key).copied().unwrap_or_default() != stream.before {
                return Some(format!("{name}: its counters do not go on"));
            }
            let numbers = |part: &Part| part.found.sequences.get(&(channel.id, Some(stream.instance))).copied();
            if let (Some((_, end)), Some((begin, _))) = (numbers(before), numbers(after))
                && begin <= end
            {
                return Some(format!("{name}: its packet_seq_num does not rise"));
            }
        }
    }
    None
}
