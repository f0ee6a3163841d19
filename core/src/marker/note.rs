//! The notes that external programs use to find markers: SystemTap probes in `.note.stapsdt` (USDT), which bpftrace, perf and gdb also read.
//!
//! # The location of the nop
//!
//! Each marker with a note has its own function, [`Note::fire`], whose `nop` is the address where a tool sets its breakpoint. While a tool is
//! attached, the function is an aggregate among the marker's subscribers; otherwise it is never called. A note therefore adds no instruction to a
//! site, to the fast path or to the full path.
//!
//! ```text
//!   DETACHED (semaphore 0) ──poll: semaphore > 0──▶ ATTACHED: subscribed, sites on ──poll: semaphore 0──▶ DETACHED
//! ```
//!
//! A tool increments the note's semaphore, a word in the program's memory, when it attaches, and decrements it when it detaches. For uprobes the
//! kernel does this; a debugger writes the memory. The program is not notified: [`poll`](crate::usdt::poll) has to check.
//!
//! # The arguments
//!
//! The function writes the [words](tracepoint_ring::field::words) of the event to its stack, and the note describes them as memory relative to one
//! register: `-4@0(%rdi) 8@8(%rdi) 8@16(%rdi)`. So any number of fields needs one register, and no field type needs code of its own.
//!
//! The section `.note.tracepoint` has the names and types of the fields, and the address of the semaphore, which a reader uses to find the
//! corresponding note: `.note.stapsdt` has no space for names.
//!
//! # Linkers
//!
//! The marker's entry in the table retains the marker, and the marker retains the function: a note exists if and only if the marker is listed. The
//! function first tests its own semaphore. Two functions therefore differ in a relocation, so a linker that folds identical functions (`--icf`)
//! keeps them separate; and an event between a detach and the next `poll` does not reach a tool that is gone.

use super::field_view::FieldView;
use super::subscriber::{Aggregate, Entry, Subscriber};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use tracepoint_ring::field::words::Words;
use tracepoint_ring::update::UpdateGuard;

/// The ticket of a note's entry in a list of subscribers, at most one per marker. Tickets of subscriptions count from 0.
const TICKET: u64 = u64::MAX;

/// The note of a marker. Built by the macros only.
#[derive(Debug)]
pub struct Note {
    semaphore: &'static AtomicU16,
    fire: fn(FieldView<'_>),
    /// Changed under the update lock.
    attached: AtomicBool,
}

impl Note {
    /// A note without an attached tool.
    pub const fn new(semaphore: &'static AtomicU16, fire: fn(FieldView<'_>)) -> Self {
        Self { semaphore, fire, attached: AtomicBool::new(false) }
    }

    /// Returns whether a tool is attached. Relaxed: the word is written by the kernel or a debugger, with which no order can be established.
    pub(crate) fn is_wanted(&self) -> bool {
        self.semaphore.load(Ordering::Relaxed) != 0
    }

    /// Returns whether the marker has the note's entry among its subscribers.
    pub(crate) fn is_attached(&self, _: &UpdateGuard<'_>) -> bool {
        self.attached.load(Ordering::Relaxed)
    }

    /// Adds the note's entry to a list of subscribers, or removes it.
    pub(crate) fn set_attached(&'static self, attached: bool, entries: &mut Vec<Entry>, _: &UpdateGuard<'_>) {
        entries.retain(|entry| entry.ticket != TICKET);
        if attached {
            entries.push(Entry { subscriber: Subscriber::aggregate(Arc::new(NoteAggregate(self))), ticket: TICKET });
        }
        self.attached.store(attached, Ordering::Relaxed);
    }
}

/// The subscriber of a marker with an attached tool.
struct NoteAggregate(&'static Note);

impl Aggregate for NoteAggregate {
    fn observe(&self, _: u64, event: FieldView<'_>) {
        (self.0.fire)(event);
    }
}

/// Writes the words of an event; see [`Words::fill`].
pub fn fill_words<const N: usize>(words: &mut Words<N>, event: FieldView<'_>) -> *const u64 {
    words.fill(event.descriptor().fields(), &event)
}

/// The `N`-th eight bytes of a name, for notes whose provider is the name of the crate.
pub const fn name_word(name: &str, n: usize) -> u64 {
    let (mut word, mut i) = (0, 0);
    while i < 8 {
        if n * 8 + i < name.len() {
            word |= (name.as_bytes()[n * 8 + i] as u64) << (8 * i);
        }
        i += 1;
    }
    word
}
