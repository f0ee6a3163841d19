//! Survives a file that is cut off while it is mapped: whoever touches what is gone gets SIGBUS, whose action is to end the program.
//!
//! A handler puts an empty page of memory where the file's was, counts it, and lets the thread go on; the [guard](Guarded) then says
//! that the mapping is not whole, and its owner gives it up. The handler touches nothing but a table of atomics, and makes system calls
//! that signal handlers may make. Signals of other origin go to the handler that was there before. A program that sets a handler of its
//! own afterwards has to hand on to this one, or goes without; so does a thread that blocks SIGBUS.
#![expect(unsafe_code, reason = "signal handlers have no safe interface, and what they may do is for us to say")]

use libc::{c_int, c_void, siginfo_t};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::io;
use std::mem::{MaybeUninit, transmute};
use std::process;
use std::ptr::{self, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

/// How many mappings can be guarded at a time.
const MAX: usize = 4096;

/// A mapping that is guarded.
struct Entry {
    /// Its first byte; 0: none, 1: none any more or not yet.
    start: AtomicUsize,
    /// Behind its last byte.
    end: AtomicUsize,
    /// How many of its pages were replaced.
    replaced: AtomicU64,
    /// The owner's sum of these. Kept by the entry's [`Guarded`].
    sum: AtomicPtr<AtomicU64>,
}

const FREE: usize = 0;
const TAKEN: usize = 1;

static TABLE: [Entry; MAX] = [const {
    Entry {
        start: AtomicUsize::new(FREE),
        end: AtomicUsize::new(0),
        replaced: AtomicU64::new(0),
        sum: AtomicPtr::new(ptr::null_mut()),
    }
}; MAX];

/// The process whose mappings these are: a forked child has none of them, and perhaps others at their addresses.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The size of a page. Set before the handler is: to ask for it may allocate.
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
/// What was to happen at SIGBUS before: null until our handler is about to be set. What it points to is never freed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Guards a mapping for as long as it lives.
#[derive(Debug)]
pub struct Guarded {
    index: usize,
    /// The process whose table it is in.
    process: u32,
    /// Kept for the entry.
    _sum: Arc<AtomicU64>,
}

impl Guarded {
    /// Guards `len` bytes from `start` on, whole pages. How many of them are replaced is added to `sum`. Installs the handler, once in a
    /// process.
    ///
    /// # Errors
    ///
    /// If 4096 mappings are guarded already, or the handler cannot be installed.
    ///
    /// # Safety
    ///
    /// A page of the range may be replaced by an empty one whenever the file has lost it and a thread touches it: the pages are those of
    /// a mapping of the caller's that outlives the guard, and are used through raw pointers alone, by code to which any bytes are valid.
    pub unsafe fn new(start: usize, len: usize, sum: &Arc<AtomicU64>) -> io::Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::within(MAX, start, len, sum) }
    }

    /// The same for a caller that can do without: three quarters of the places are for those.
    ///
    /// # Errors
    ///
    /// As `new`.
    ///
    /// # Safety
    ///
    /// As `new`.
    pub unsafe fn optional(start: usize, len: usize, sum: &Arc<AtomicU64>) -> io::Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::within(MAX / 4 * 3, start, len, sum) }
    }

    /// In one of the first `places`.
    ///
    /// # Safety
    ///
    /// As `new`.
    unsafe fn within(places: usize, start: usize, len: usize, sum: &Arc<AtomicU64>) -> io::Result<Self> {
        install()?;
        // B2: Acquire pairs with the Release in `drop`: the entry is that of one mapping at a time.
        let take =
            |entry: &Entry| entry.start.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // From behind for those who need it, so that the places of the others stay for them.
        let index = if places == MAX { TABLE.iter().rposition(take) } else { TABLE[..places].iter().position(take) };
        let Some(index) = index else {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("no more than {places} mappings can be guarded"),
            ));
        };
        let entry = &TABLE[index];
        // B1: who sees this end, in `entry_of`, sees TAKEN, or what comes after it.
        entry.end.store(start + len, Ordering::Release);
        entry.replaced.store(0, Ordering::Relaxed);
        entry.sum.store(Arc::as_ptr(sum).cast_mut(), Ordering::Relaxed);
        // B1: Release pairs with the Acquire load in `entry_of`.
        entry.start.store(start, Ordering::Release);
        Ok(Self { index, process: process::id(), _sum: Arc::clone(sum) })
    }

    /// Whether no page was replaced.
    pub fn is_whole(&self) -> bool {
        TABLE[self.index].replaced.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // A forked child empties its copy of the table before it uses it: the entry may be another mapping's by now.
        if process::id() == self.process {
            // B2.
            TABLE[self.index].start.store(FREE, Ordering::Release);
        }
    }
}

/// The entry of the mapping that `address` is in.
fn entry_of(address: usize) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| {
        // B1. An entry that changes meanwhile is of a mapping that is made or goes: nobody touches that.
        let start = entry.start.load(Ordering::Acquire);
        let end = entry.end.load(Ordering::Acquire);
        start > TAKEN && (start..end).contains(&address) && entry.start.load(Ordering::Relaxed) == start
    })
}

/// Puts an empty page where the file's was, if there was one of ours at `address`.
fn replace(address: usize) -> bool {
    if PROCESS.load(Ordering::Relaxed) != process::id() {
        return false;
    }
    let Some(entry) = entry_of(address) else { return false };
    let size = PAGE_SIZE.load(Ordering::Relaxed);
    let page = without_provenance_mut::<c_void>(address & !(size - 1));
    // SAFETY: the page is of a mapping that was given to us (`Guarded::new`) and is in use just now, since a thread of this process
    // touched it: it is not unmapped before that thread goes on. What was in it is gone, with the file's end; nothing in it is the
    // referent of a reference, by the same promise.
    let mapped =
        unsafe { mmap_anonymous(page, size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED) };
    if mapped.is_err() {
        return false;
    }
    // SAFETY: the page that was just mapped. Like the mapping around it, it is not for forked children; should that fail, a child has
    // a page of memory that nobody uses.
    let _ = unsafe { madvise(page, size, Advice::LinuxDontFork) };
    entry.replaced.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the mapping is in use, and with it its `Guarded`, which keeps the sum.
    if let Some(sum) = unsafe { entry.sum.load(Ordering::Relaxed).as_ref() } {
        sum.fetch_add(1, Ordering::Relaxed);
    }
    true
}

/// The handler. Async-signal-safe: atomics, and calls of the kernel that leave `errno` alone, but for those of `hand_on`.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid `siginfo_t` to a handler that was installed with SA_SIGINFO.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // Of a page that is not in the file; others are sent by somebody, or tell of broken memory.
    if code == libc::BUS_ADRERR && replace(address) {
        return;
    }
    hand_on(signal, code, info, context);
}

/// Does what would have happened without us.
fn hand_on(signal: c_int, code: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // B3: Acquire pairs with the Release stores in `install`. SAFETY: null, or what is never freed nor changed.
    let Some(previous) = (unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() }) else { return };
    let is_sent = code <= 0;
    match previous.sa_sigaction {
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: sets the default action and, where the signal does not come again by itself at the instruction that faulted,
            // sends it to this thread, which gets it when the handler returns. All of these are async-signal-safe.
            unsafe {
                let mut default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const default, ptr::null_mut());
                if is_sent {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: whoever installed the handler said by SA_SIGINFO that it is one of this type; it gets what the kernel gave us.
            unsafe {
                transmute::<usize, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(handler)(signal, info, context);
            };
        }
        handler => {
            // SAFETY: as above, without SA_SIGINFO.
            unsafe { transmute::<usize, extern "C" fn(c_int)>(handler)(signal) };
        }
    }
}

/// Installs the handler, once in a process; it stays.
fn install() -> io::Result<()> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let is_installed = || PROCESS.load(Ordering::Relaxed) == process::id();
    if is_installed() {
        return Ok(());
    }
    PAGE_SIZE.store(rustix::param::page_size(), Ordering::Relaxed);
    let _installing = lock(&INSTALLING)?;
    if is_installed() {
        return Ok(());
    }
    // A child that was forked has the handler already, and what was before it.
    if PREVIOUS.load(Ordering::Relaxed).is_null() {
        pin_this_object();
        set_handler()?;
    }
    // What stands in the table of a forked child is its parent's.
    for entry in &TABLE {
        entry.start.store(FREE, Ordering::Relaxed);
    }
    PROCESS.store(process::id(), Ordering::Relaxed);
    Ok(())
}

/// For a while: in a forked child it may be held by a thread that is not there.
fn lock(mutex: &Mutex<()>) -> io::Result<MutexGuard<'_, ()>> {
    for _ in 0..100 {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(error)) => return Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

fn set_handler() -> io::Result<()> {
    let call = |new: *const libc::sigaction, old: *mut libc::sigaction| {
        // SAFETY: both are null or valid for the call, and a new handler is `handle`, of the type that SA_SIGINFO says.
        if unsafe { libc::sigaction(libc::SIGBUS, new, old) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: integers and a pointer that may be null; zero is a value of each.
    let mut previous = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    call(ptr::null(), &raw mut previous)?;
    let mut ours = previous;
    ours.sa_sigaction = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    // On a stack of its own where there is one, as handlers of overflows want it. What the one before blocks is blocked for both.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // B3: Release pairs with the Acquire in `hand_on`. Before the handler is set, so that it never finds nothing.
    PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::Release);
    let mut replaced = previous;
    call(&raw const ours, &raw mut replaced).inspect_err(|_| PREVIOUS.store(ptr::null_mut(), Ordering::Release))?;
    if replaced.sa_sigaction != previous.sa_sigaction {
        // Another thread has set one in between. B3.
        PREVIOUS.store(Box::into_raw(Box::new(replaced)), Ordering::Release);
    }
    Ok(())
}

/// Keeps the object that the handler is in loaded for ever: signals come whatever was unloaded meanwhile.
fn pin_this_object() {
    #[cfg(all(target_os = "linux", not(target_feature = "crt-static")))]
    // SAFETY: `info` is a valid place; `dladdr` fills it with a name that lives as long as the object, which is loaded, as it runs.
    // `dlopen` with NOLOAD only adds NODELETE to what is loaded; if it does not know the name (of the program itself, which is never
    // unloaded), it does nothing.
    unsafe {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed().assume_init();
        let handler = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as *const c_void;
        if libc::dladdr(handler, &raw mut info) != 0 && !info.dli_fname.is_null() {
            libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::{MmapOptions, MmapRaw};
    use std::fs::File;

    /// Two pages of a file, mapped.
    fn mapped() -> io::Result<(File, MmapRaw)> {
        let file = tempfile::tempfile()?;
        file.set_len(2 * rustix::param::page_size() as u64)?;
        let map = MmapOptions::new().map_raw(&file)?;
        Ok((file, map))
    }

    fn guard(map: &MmapRaw, sum: &Arc<AtomicU64>) -> io::Result<Guarded> {
        // SAFETY: each test drops the guard before the mapping, and touches the mapping by `touch` alone.
        unsafe { Guarded::new(map.as_ptr().addr(), map.len(), sum) }
    }

    /// Stores a byte into page `page`, and reads it back.
    fn touch(map: &MmapRaw, page: usize) -> u8 {
        // SAFETY: inside the mapping, which has two pages; nothing else refers to it.
        unsafe {
            let place = map.as_mut_ptr().add(page * rustix::param::page_size());
            place.write_volatile(7);
            place.read_volatile()
        }
    }

    #[test]
    fn pages_that_were_cut_off_are_replaced_and_counted() -> io::Result<()> {
        let ((cut, map), (_other, whole)) = (mapped()?, mapped()?);
        let sum = Arc::new(AtomicU64::new(0));
        let guards = (guard(&map, &sum)?, guard(&whole, &sum)?);
        cut.set_len(rustix::param::page_size() as u64)?;
        assert_eq!((touch(&map, 0), guards.0.is_whole()), (7, true), "the page that is still there");
        cut.set_len(0)?;
        assert_eq!((touch(&map, 0), touch(&map, 1), touch(&map, 1), touch(&whole, 1)), (7, 7, 7, 7));
        assert_eq!((guards.0.is_whole(), guards.1.is_whole(), sum.load(Ordering::Relaxed)), (false, true, 2));
        drop(guards);
        Ok(())
    }

    #[test]
    fn who_can_do_without_leaves_places_for_who_cannot() -> io::Result<()> {
        let (_file, map) = mapped()?;
        let sum = Arc::new(AtomicU64::new(0));
        // SAFETY: the guards are dropped before the mapping, which nobody touches.
        let optional = || unsafe { Guarded::optional(map.as_ptr().addr(), map.len(), &sum) };
        let mut guards = Vec::new();
        let refused = loop {
            match optional() {
                Ok(guard) => guards.push(guard),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
        assert!(guards.len() <= MAX / 4 * 3);
        guards.push(guard(&map, &sum)?);
        drop(guards);
        Ok(())
    }

    #[test]
    fn places_in_the_table_are_used_again() -> io::Result<()> {
        let sum = Arc::new(AtomicU64::new(0));
        for _ in 0..=MAX {
            let (file, map) = mapped()?;
            let guarded = guard(&map, &sum)?;
            assert!(guarded.is_whole());
            file.set_len(0)?;
            touch(&map, 1);
            assert!(!guarded.is_whole());
            drop(guarded);
        }
        assert_eq!(sum.load(Ordering::Relaxed), MAX as u64 + 1);
        Ok(())
    }
}
