//! The states of one thread over time.
//!
//! ```text
//!                     switched in
//!   Unknown ───────────────────────────▶ Running ──────┐ switched out, preempted
//!      ▲                                  │     ▲       ▼
//!      │ events are lost      out, blocked│     └───── Ready
//!   any state                             ▼             ▲
//!                                       Blocked ────────┘ woken
//! ```
//!
//! The time between two changes belongs to a cause once it is over: the end of a wait says who woke the thread, and the end of a page fault that its
//! waits were for the page. Without the rights to record wake-ups, a thread changes from `Blocked` to `Running` at once.

use super::cause::{Cause, Division, WokenBy, cause};
use std::collections::VecDeque;
use std::sync::Arc;

/// A thread: the number of its host, and its id.
pub(crate) type Key = (u32, u64);

/// A time in which a thread did not run.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) cause: Cause,
    pub(super) call: Option<Arc<str>>,
    /// The thread that ended it, and what that one did meanwhile.
    pub(super) woken_by: Option<(Key, Box<Division>)>,
    /// The tag of the thread at its end.
    tag: u32,
}

/// A period of a thread, with its final cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) cause: Cause,
    /// The system call during the wait.
    pub(crate) call: Option<Arc<str>>,
    /// The thread that ended the wait.
    pub(crate) woken_by: Option<Key>,
    /// The tag of the thread during the wait.
    pub(crate) tag: u32,
}

impl Period {
    fn new(from: i64, to: i64, cause: Cause, tag: u32) -> Self {
        Self { from, to, cause, call: None, woken_by: None, tag }
    }
}

/// What a thread ran at a time.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) time: i64,
    /// Its process, by the index of the kernel's trace.
    pub(crate) process: u32,
    /// The addresses, from the innermost one.
    pub(crate) stack: Vec<u64>,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unknown,
    /// It ran when it was found, or was ready.
    Runnable,
    Running,
    Ready,
    Blocked {
        is_uninterruptible: bool,
    },
    Gone,
}

/// A state that a thread changes to when it ceases to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Out {
    Ready,
    Blocked { is_uninterruptible: bool },
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) name: Option<Arc<str>>,
    pub(super) state: State,
    /// When it changed to this state.
    pub(super) since: i64,
    /// The time of its last event, and the CPU on which it last began to run.
    pub(super) last: i64,
    pub(super) cpu: Option<u64>,
    /// Since when it is recorded; `None` if it is not.
    pub(super) recorded: Option<i64>,
    /// The recordings that record it, a bit for each; and those that have said so when they began with it.
    pub(super) recordings: u64,
    pub(super) announced: u64,
    /// The system call that it is in.
    pub(super) call: Option<Arc<str>>,
    pub(super) sums: Division,
    pub(super) waits: VecDeque<Wait>,
    pub(super) samples: VecDeque<Sample>,
    /// The number of waits that are no longer kept.
    pub(super) dropped: u64,
    /// The number of waits when it last began or ended a system call or a page fault.
    pub(super) explained: u64,
    /// The number of waits that have been taken as periods, and until when.
    pub(super) taken: u64,
    pub(super) taken_until: i64,
    /// The tag of the waits that end from now on.
    pub(super) tag: u32,
    /// Maximum number of waits that are kept in detail.
    pub(super) max_waits: usize,
    /// The number of threads that had its id before it.
    pub(super) before: u64,
}

/// A thread at a time.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) time: i64,
    /// See [`Thread::before`].
    pub(super) before: u64,
    pub(super) sums: Division,
}

impl Mark {
    /// The time from the mark on, in nanoseconds.
    pub(super) fn until(&self, time: i64) -> u64 {
        self.time.abs_diff(time)
    }
}

impl Thread {
    pub(super) const fn new(max_waits: usize) -> Self {
        Self {
            name: None,
            state: State::Unknown,
            since: i64::MIN,
            last: i64::MIN,
            cpu: None,
            recorded: None,
            recordings: 0,
            announced: 0,
            call: None,
            sums: Division::new(),
            waits: VecDeque::new(),
            samples: VecDeque::new(),
            dropped: 0,
            explained: 0,
            taken: 0,
            taken_until: i64::MIN,
            tag: 0,
            max_waits,
            before: 0,
        }
    }

    /// The cause of the state that it is in, if nothing ends it.
    pub(super) fn current(&self) -> Cause {
        match self.state {
            _ if self.recorded.is_none() => Cause::Unknown,
            State::Unknown | State::Gone => Cause::Unknown,
            State::Running | State::Runnable => Cause::Running,
            State::Ready => Cause::Ready,
            State::Blocked { is_uninterruptible } => cause(self.call.as_deref(), is_uninterruptible, WokenBy::Unknown),
        }
    }

    /// Ends its state: the time in it has this cause.
    pub(super) fn change(&mut self, time: i64, cause: Cause, woken_by: Option<(Key, Box<Division>)>, state: State) {
        // Times of a damaged trace may decrease.
        let time = time.max(self.since);
        let from = std::mem::replace(&mut self.since, time);
        if from == i64::MIN {
            self.taken_until = time;
        }
        if from != i64::MIN && from < time {
            self.sums.add(cause, from.abs_diff(time));
            if cause != Cause::Running {
                if self.waits.len() >= self.max_waits {
                    self.waits.pop_front();
                    self.dropped += 1;
                }
                let call = self.call.clone().filter(|_| !matches!(cause, Cause::Ready | Cause::Unknown));
                self.waits.push_back(Wait { from, to: time, cause, call, woken_by, tag: self.tag });
            }
        }
        self.state = state;
        if matches!(state, State::Unknown | State::Gone) {
            self.cpu = None;
        }
    }

    pub(super) fn number_of_waits(&self) -> u64 {
        self.dropped + self.waits.len() as u64
    }

    /// Takes the periods whose cause is final; `is_over` says that all are. The end of a page fault can change a cause while the wait is kept.
    pub(super) fn take(&mut self, is_over: bool, take: &mut dyn FnMut(Period)) {
        let is_over = is_over || self.state == State::Gone;
        self.taken = self.taken.max(self.dropped);
        while let Some(wait) = usize::try_from(self.taken - self.dropped).ok().and_then(|index| self.waits.get(index)) {
            let may_change = wait.cause == Cause::Blocked && self.taken >= self.explained;
            if may_change && !is_over && self.number_of_waits() - self.taken < self.max_waits as u64 {
                return;
            }
            let Wait { from, to, cause, tag, .. } = *wait;
            if self.taken_until < from {
                take(Period::new(self.taken_until, from, Cause::Running, tag));
            }
            if cause != Cause::Unknown {
                let woken_by = wait.woken_by.as_ref().map(|(key, _)| *key);
                take(Period { call: wait.call.clone(), woken_by, ..Period::new(from, to, cause, tag) });
            }
            (self.taken, self.taken_until) = (self.taken + 1, to);
        }
        // Nothing follows, or only after a time that is unknown.
        if matches!(self.state, State::Unknown | State::Gone) && self.taken_until < self.since {
            take(Period::new(self.taken_until, self.since, Cause::Running, self.tag));
            self.taken_until = self.since;
        }
    }

    /// Takes all other periods until a time that is not before the last change.
    pub(super) fn take_rest(&mut self, time: i64, take: &mut dyn FnMut(Period)) {
        self.take(true, take);
        let current = self.current();
        // What was not a wait before was running.
        let ran_until = if current == Cause::Running { time } else { self.since };
        if self.since != i64::MIN && self.taken_until < ran_until {
            take(Period::new(self.taken_until, ran_until, Cause::Running, self.tag));
        }
        if !matches!(current, Cause::Running | Cause::Unknown) && self.since < time {
            let call = self.call.clone().filter(|_| current != Cause::Ready);
            take(Period { call, ..Period::new(self.since, time, current, self.tag) });
        }
    }

    /// Its sums at a time that is not before the last change.
    pub(super) fn at(&self, time: i64) -> Mark {
        let mut sums = self.sums.clone();
        if self.since != i64::MIN && self.since < time {
            sums.add(self.current(), self.since.abs_diff(time));
        }
        Mark { time, before: self.before, sums }
    }

    /// What it did from a time on, until another one that is not before its last change.
    pub(super) fn did(&self, from: i64, to: i64) -> Division {
        let mut did = Division::default();
        let mut add = |cause, begin: i64, end: i64| {
            let (begin, end) = (begin.max(from), end.min(to));
            if begin < end {
                did.add(cause, begin.abs_diff(end));
            }
        };
        let is_known = self.waits.front().is_some_and(|first| first.from <= from) || self.dropped == 0;
        let begun = self.recorded.filter(|_| is_known).or_else(|| self.waits.front().map(|first| first.from));
        add(Cause::Unknown, from, begun.unwrap_or(to));
        for wait in self.waits.iter().rev().take_while(|wait| wait.to > from) {
            add(wait.cause, wait.from.max(begun.unwrap_or(to)), wait.to);
        }
        if self.since != i64::MIN && self.current() != Cause::Running {
            add(self.current(), self.since, to);
        }
        did.fit(from.abs_diff(to), Cause::Running);
        did
    }
}
