//! How the time of spans divides: the difference of the sums of a span's thread between its begin and its end.
//!
//! The time of an asynchronous span consists of its polls; between them, it is not polled.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;
use tracepoint_reader::{Event, SpanPart};

use super::Waits;
use super::cause::{Cause, Division};
use super::thread::{Key, Mark, Sample};

/// Maximum number of kinds of waits of a span.
const MAX_KINDS: usize = 16;

/// Waits of one kind in a span.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WaitKind {
    /// What the thread waited for.
    pub cause: Cause,
    /// The system call during the waits.
    pub call: Option<String>,
    /// The name and the id of the thread that ended the waits.
    pub woken_by: Option<String>,
    /// Their number.
    pub count: u64,
    /// Their total time in nanoseconds.
    pub nanoseconds: u64,
    /// What the thread that ended them did meanwhile.
    pub meanwhile: Option<Division>,
}

/// How the time of a span divides.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SpanTime {
    /// Its parts, whose sum is the duration of the span.
    pub division: Division,
    /// The waits, the longest kind first, as far as they are kept; none of an asynchronous span.
    pub waits: Vec<WaitKind>,
    /// The samples of the processor, if the format uses them.
    pub(crate) samples: Vec<Sample>,
}

impl SpanTime {
    /// The time of a span whose thread was not recorded.
    fn unknown(nanoseconds: u64) -> Self {
        Self { division: Division::unknown(nanoseconds), ..Self::default() }
    }
}

/// A span that has begun or ended, and was not passed on yet.
#[derive(Debug)]
struct Pending {
    thread: Key,
    mark: Mark,
    /// The `parent_id` of its begin event.
    parent: u64,
    name: String,
    ended: Option<SpanTime>,
    /// The sums of its polls, if it has any.
    polls: Option<SpanTime>,
}

/// The spans that have begun, by process and id.
#[derive(Debug, Default)]
pub(crate) struct SpanTimes(HashMap<(u32, u64), Pending>);

impl SpanTimes {
    /// Notes the begin or the end of a span of a process.
    pub(crate) fn add(&mut self, event: &Event, part: SpanPart, key: Key, process: u32, waits: &mut Waits) {
        let Some(mark) = waits.threads.runs_at(key, event.time_ns) else { return };
        let id = (process, super::number(event, "span_id"));
        if part == SpanPart::Begin {
            let name = event.class.span().map_or("", |(name, _)| name).to_owned();
            let parent = super::number(event, "parent_id");
            self.0.insert(id, Pending { thread: key, mark, parent, name, ended: None, polls: None });
            return;
        }
        let polls = self.0.get_mut(&id).and_then(|pending| pending.polls.take());
        let Some(pending) = self.0.get(&id).filter(|pending| pending.ended.is_none()) else { return };
        let duration = pending.mark.until(event.time_ns);
        let mut ended = match polls {
            Some(polls) => polls,
            None if pending.thread == key => until(waits, pending, event.time_ns),
            None => SpanTime::unknown(duration),
        };
        ended.division.fit(duration, Cause::NotPolled);
        let parent = (process, pending.parent);
        let poll = pending.name.strip_suffix("_poll").map(str::to_owned);
        if let Some(parent) = self.0.get_mut(&parent).filter(|parent| Some(&parent.name) == poll.as_ref()) {
            let polls = parent.polls.get_or_insert_default();
            polls.division.add_all(&ended.division);
            polls.samples.extend_from_slice(&ended.samples);
        }
        if let Some(pending) = self.0.get_mut(&id) {
            pending.ended = Some(ended);
        }
    }

    /// Takes the time of a span. `end` is the time until which it was open, `nanoseconds` its duration.
    pub(crate) fn take(&mut self, id: (u32, u64), end: i64, nanoseconds: u64, waits: &Waits) -> SpanTime {
        match self.0.remove(&id) {
            Some(Pending { ended: Some(ended), .. }) => ended,
            Some(mut open) => match open.polls.take() {
                None => until(waits, &open, end),
                Some(mut polls) => {
                    polls.division.fit(nanoseconds, Cause::NotPolled);
                    polls
                }
            },
            None => SpanTime::unknown(nanoseconds),
        }
    }
}

/// The time of a pending span until this time.
fn until(waits: &Waits, pending: &Pending, time: i64) -> SpanTime {
    let division = waits.threads.since(pending.thread, &pending.mark, time);
    let samples = waits.threads.samples(pending.thread, &pending.mark).cloned().collect();
    SpanTime { division, waits: kinds(waits, pending.thread, &pending.mark), samples }
}

/// The waits of a thread since a mark, by kind.
fn kinds(waits: &Waits, key: Key, mark: &Mark) -> Vec<WaitKind> {
    let mut kinds: Vec<WaitKind> = Vec::new();
    for wait in waits.threads.waits(key, mark).filter(|wait| wait.cause != Cause::Unknown) {
        let (call, woken_by) = (wait.call.as_deref(), wait.woken_by.as_ref());
        let woken_by = woken_by.map(|(key, did)| (waits.title_of(*key), did));
        let is_of = |kind: &&mut WaitKind| {
            let known = (kind.cause, kind.call.as_deref(), kind.woken_by.as_deref());
            known == (wait.cause, call, woken_by.as_ref().map(|(name, _)| name.as_str()))
        };
        let nanoseconds = wait.from.abs_diff(wait.to);
        if let Some(kind) = kinds.iter_mut().find(is_of) {
            kind.count += 1;
            kind.nanoseconds = kind.nanoseconds.saturating_add(nanoseconds);
            if let (Some(meanwhile), Some((_, did))) = (&mut kind.meanwhile, &woken_by) {
                meanwhile.add_all(did);
            }
            continue;
        }
        let meanwhile = woken_by.as_ref().map(|(_, did)| (***did).clone());
        kinds.push(WaitKind {
            cause: wait.cause,
            call: call.map(str::to_owned),
            woken_by: woken_by.map(|(name, _)| name),
            count: 1,
            nanoseconds,
            meanwhile,
        });
    }
    kinds.sort_by_key(|kind| Reverse(kind.nanoseconds));
    kinds.truncate(MAX_KINDS);
    kinds
}
