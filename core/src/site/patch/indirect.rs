//! Sites whose code changes only before it can be executed, for programs in which code must not change under running threads:
//! `TRACEPOINT_SITES=indirect` in the environment of the program.
//!
//! When an object is registered (in its constructor, before its code is executed) each of its sites becomes a jump through a word of data of
//! its own, which holds the address of the next instruction or of the cold path. Switching stores that word; code is not written again.
//!
//! ```text
//!   41 BB rr rr rr rr     mov r11d, imm32        as it was linked
//!   FF 25 rr rr rr rr     jmp [rip + disp32]     from the constructor on; the word decides
//! ```
//!
//! The words of an object lie in a mapping that its jumps reach. A site that cannot be written stays as it was linked, and is patched. An
//! object that is unloaded leaves its words behind: its other destructors may still execute sites.

use super::entry::{Entry, Site};
use super::machine::{self, Form, LENGTH};
use super::segment::Segments;
use super::text;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError};
use tracepoint_ring::primitive::Mutex;

/// The distances from an object's code at which its words are tried: below it, and above it, behind the heap of a program at a fixed address.
const DISTANCES: [isize; 6] = [-(1 << 26), -(1 << 28), -(1 << 30), 1 << 30, 5 << 28, 3 << 29];

/// The words of the objects. All functions here run under the update lock, so this mutex is never contended.
static WORDS: Mutex<Vec<Words>> = Mutex::new(Vec::new());

/// The words of an object, one for each of its entries: 0 if the site is not indirect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// The address of the object's table of entries.
    table: usize,
    words: &'static [AtomicUsize],
}

impl Words {
    /// The words of the registered object with these entries, if its sites are indirect.
    pub(super) fn of(entries: &[Entry]) -> Option<Self> {
        let known = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().copied().find(|words| words.table == entries.as_ptr().addr())
    }

    /// Returns whether the site of the entry with this number is indirect.
    pub(super) fn has(self, number: usize) -> bool {
        // Relaxed: only the holder of the update lock changes it.
        self.words[number].load(Ordering::Relaxed) != 0
    }

    /// Returns whether all sites of the object are indirect.
    pub(super) fn is_complete(self) -> bool {
        (0..self.words.len()).all(|number| self.has(number))
    }
}

/// Switches those of an object's sites that are indirect to the forms that `wanted` returns.
pub(super) fn switch(entries: &[Entry], wanted: impl Fn(&Entry) -> Option<Form>) {
    let Some(words) = Words::of(entries) else { return };
    for (number, entry) in entries.iter().enumerate().filter(|(number, _)| words.has(*number)) {
        if let Some(form) = wanted(entry) {
            // Relaxed: a site needs no order (see `Key`).
            words.words[number].store(entry.target(form), Ordering::Relaxed);
        }
    }
}

/// Makes the sites of a new object, with these entries and this code, indirect, if the environment asks for it.
pub(super) fn convert(entries: &[Entry], code: &Segments) {
    // Read at the start alone: a child that was forked while another thread changed the environment must not wait for its lock.
    static IS_WANTED: OnceLock<bool> = OnceLock::new();
    let is_wanted = || std::env::var_os("TRACEPOINT_SITES").is_some_and(|form| form == "indirect");
    if !IS_WANTED.get_or_init(is_wanted) || entries.is_empty() {
        return;
    }
    let Some(words) = map_near(code, entries.len()) else { return };
    let mut jumps = Vec::new();
    for (entry, word) in entries.iter().zip(words) {
        let jump = |site: &Site<'_>| machine::indirect(site.bounds().0, std::ptr::from_ref(word).addr());
        if let Some((site, jump)) = entry.site(code).and_then(|site| Some((site, jump(&site)?))) {
            // Before the jump: it must not be executed with an empty word.
            word.store(entry.target(Form::Off), Ordering::Relaxed);
            jumps.push((site, jump));
        }
    }
    jumps.sort_unstable_by_key(|(site, _)| site.bounds());
    text::replace(&jumps);
    for (entry, word) in entries.iter().zip(words) {
        // A site that has its linked instruction was not written, and is patched.
        if entry.site(code).is_some() {
            word.store(0, Ordering::Relaxed);
        }
    }
    let table = entries.as_ptr().addr();
    WORDS.lock().unwrap_or_else(PoisonError::into_inner).push(Words { table, words });
}

/// Forgets the words of an object that is unloaded.
pub(super) fn forget(entries: &[Entry]) {
    let mut known = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|words| words.table != entries.as_ptr().addr());
}

/// Maps zeroed words that the jumps of this code reach, and that are never unmapped.
fn map_near(code: &Segments, count: usize) -> Option<&'static [AtomicUsize]> {
    let (start, end) = code.bounds()?;
    let size = count * size_of::<AtomicUsize>();
    let reaches = |words: usize| {
        let reach = |site: usize, word: usize| machine::indirect(site, word).is_some();
        let last = words + size - size_of::<AtomicUsize>();
        [words, last].iter().all(|word| reach(start, *word) && reach(end - LENGTH, *word))
    };
    DISTANCES.iter().find_map(|distance| {
        let hint = if *distance < 0 { start } else { end }.checked_add_signed(*distance)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which replaces none: the address is a hint.
        let mapped =
            unsafe { libc::mmap(std::ptr::without_provenance_mut(hint & !0xFFF), size, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        if !reaches(mapped.addr()) {
            // SAFETY: the mapping that was made above, to which nothing refers.
            unsafe { libc::munmap(mapped, size) };
            return None;
        }
        // SAFETY: a mapping of this size, zeroed, aligned to a page, and never unmapped.
        Some(unsafe { std::slice::from_raw_parts(mapped.cast::<AtomicUsize>(), count) })
    })
}
