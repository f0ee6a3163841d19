//! The notes by which programs outside find markers: SystemTap's probes in `.note.stapsdt` (USDT), which bpftrace, perf and gdb read, too.
//!
//! # Where the nop stands
//!
//! Each marker with a note has a function of its own, [`Note::fire`], whose `nop` is the place at which a tool sets its breakpoint. The
//! function is an aggregate among the marker's subscribers while a tool is attached, and nobody calls it otherwise: a note adds no
//! instruction to a site, to the fast path or to the full path.
//!
//! ```text
//!   DETACHED (semaphore 0) ──poll: semaphore > 0──▶ ATTACHED: subscribed, sites on ──poll: semaphore 0──▶ DETACHED
//! ```
//!
//! A tool adds one to the note's semaphore, a word of the program's memory, when it attaches, and subtracts it when it detaches. The
//! kernel does so for uprobes, a debugger writes the memory. Nothing tells the program: [`poll`](crate::usdt::poll) has to look.
//!
//! # The arguments
//!
//! The function writes the [words](tracepoint_ring::field::words) of the event to its stack, and the note describes them as memory behind one
//! register: `-4@0(%rdi) 8@8(%rdi) 8@16(%rdi)`. So any number of fields takes one register, and no type of field needs code of its own.
//!
//! The section `.note.tracepoint` has the names and types of the fields, and the address of the semaphore, by which a reader finds the note
//! that they belong to: `.note.stapsdt` has no place for names.
//!
//! # Linkers
//!
//! The marker's entry in the table retains the marker, which retains the function: there is a note exactly if the marker is listed. The
//! function tests its own semaphore first. So two functions differ in a relocation, and a linker that folds identical functions (`--icf`)
//! leaves them apart; and an event between a detach and the next `poll` reaches no tool that is not there.

use super::field_view::FieldView;
use super::subscriber::{Aggregate, Entry, Subscriber};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use tracepoint_ring::field::words::Words;
use tracepoint_ring::update::UpdateGuard;

/// The ticket of the entry of a note in a list of subscribers, at most one for each marker. Tickets of subscriptions count from 0.
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
    /// A note without a tool.
    pub const fn new(semaphore: &'static AtomicU16, fire: fn(FieldView<'_>)) -> Self {
        Self { semaphore, fire, attached: AtomicBool::new(false) }
    }

    /// Whether a tool is attached. Relaxed: the word is written by the kernel or a debugger, with which no order can be agreed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.semaphore.load(Ordering::Relaxed) != 0
    }

    /// Whether the marker has the note's entry among its subscribers.
    pub(crate) fn is_attached(&self, _: &UpdateGuard<'_>) -> bool {
        self.attached.load(Ordering::Relaxed)
    }

    /// Adds the note's entry to a list of subscribers, or removes it.
    pub(crate) fn set_attached(&'static self, attached: bool, entries: &mut Vec<Entry>, _: &UpdateGuard<'_>) {
        entries.retain(|entry| entry.ticket != TICKET);
        if attached {
            entries.push(Entry { subscriber: Subscriber::aggregate(Arc::new(Attached(self))), ticket: TICKET });
        }
        self.attached.store(attached, Ordering::Relaxed);
    }
}

/// The subscriber of a marker to which a tool is attached.
struct Attached(&'static Note);

impl Aggregate for Attached {
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
