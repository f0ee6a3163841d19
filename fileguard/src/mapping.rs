//! Survives the truncation of a mapped file. A thread that touches a page beyond the new end gets SIGBUS, whose default action ends the
//! program.
//!
//! A handler replaces the page by an empty one, counts it, and lets the thread continue. The [guard](MappingGuard) then reports that the mapping is not
//! whole, so that its owner can give it up. The handler uses a table of atomics and async-signal-safe system calls only. Other signals are passed to
//! the previous handler. A handler that the program installs later must call this one, otherwise the protection ends. Threads that block SIGBUS are
//! not protected.
#![expect(unsafe_code, reason = "signal handlers and fixed mappings have no safe interface")]

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

/// Maximum number of guarded mappings.
const MAX: usize = 4096;

/// A guarded mapping.
struct Entry {
    /// Address of the first byte, or `FREE`, or `TAKEN` while the entry is being filled.
    start: AtomicUsize,
    /// Address after the last byte.
    end: AtomicUsize,
    /// Number of replaced pages.
    replaced: AtomicU64,
    /// The owner's sum of replaced pages. The entry's [`MappingGuard`] keeps it alive.
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

/// The process that owns the mappings in the table. A forked child does not inherit them, and may have other mappings at the same addresses.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Page size. Set before the handler is installed, because the query may allocate.
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
/// The previous action of SIGBUS; null until just before the handler is installed. Never freed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Guards a mapping until it is dropped.
#[derive(Debug)]
pub struct MappingGuard {
    index: usize,
    /// The process that created it.
    process: u32,
    /// Keeps the sum alive, to which the entry points.
    _sum: Arc<AtomicU64>,
}

impl MappingGuard {
    /// Guards `len` bytes starting at `start`, in whole pages. Adds the number of replaced pages to `sum`. Installs the handler once per
    /// process.
    ///
    /// # Errors
    ///
    /// If 4096 mappings are guarded already, or the handler cannot be installed.
    ///
    /// # Safety
    ///
    /// A page of the range may be replaced by an empty one when a thread touches it after the file was truncated. The pages belong to a mapping
    /// of the caller that outlives the guard, and are accessed through raw pointers only, by code for which any bytes are valid.
    pub unsafe fn new(start: usize, len: usize, sum: &Arc<AtomicU64>) -> io::Result<Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::within(MAX, start, len, sum) }
    }

    /// The same for a mapping that is not essential: such mappings use at most three quarters of the entries.
    ///
    /// # Errors
    ///
    /// The same as for `new`.
    ///
    /// # Safety
    ///
    /// The same as for `new`.
    pub unsafe fn optional(start: usize, len: usize, sum: &Arc<AtomicU64>) -> io::Result<Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::within(MAX / 4 * 3, start, len, sum) }
    }

    /// Guards a mapping, using one of the first `places` entries.
    ///
    /// # Safety
    ///
    /// The same as for `new`.
    unsafe fn within(places: usize, start: usize, len: usize, sum: &Arc<AtomicU64>) -> io::Result<Self> {
        install()?;
        // B2: Acquire pairs with the Release in `drop`: an entry belongs to one mapping at a time.
        let take =
            |entry: &Entry| entry.start.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // Essential mappings take entries from the end, so that the entries for optional ones remain free.
        let index = if places == MAX { TABLE.iter().rposition(take) } else { TABLE[..places].iter().position(take) };
        let Some(index) = index else {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("no more than {places} mappings can be guarded"),
            ));
        };
        let entry = &TABLE[index];
        // B1: a load of this end in `entry_of` implies that the start is TAKEN or newer there.
        entry.end.store(start + len, Ordering::Release);
        entry.replaced.store(0, Ordering::Relaxed);
        entry.sum.store(Arc::as_ptr(sum).cast_mut(), Ordering::Relaxed);
        // B1: Release pairs with the Acquire load in `entry_of`.
        entry.start.store(start, Ordering::Release);
        Ok(Self { index, process: process::id(), _sum: Arc::clone(sum) })
    }

    /// Returns whether no page has been replaced.
    pub fn is_whole(&self) -> bool {
        TABLE[self.index].replaced.load(Ordering::Relaxed) == 0
    }
}

impl Drop for MappingGuard {
    fn drop(&mut self) {
        // A forked child clears its copy of the table before it uses it: the entry may belong to another mapping now.
        if process::id() == self.process {
            // B2.
            TABLE[self.index].start.store(FREE, Ordering::Release);
        }
    }
}

/// The entry of the mapping that contains `address`.
fn entry_of(address: usize) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| {
        // B1. An entry that changes in between belongs to a mapping that is being created or removed, which no thread touches.
        let start = entry.start.load(Ordering::Acquire);
        let end = entry.end.load(Ordering::Acquire);
        start > TAKEN && (start..end).contains(&address) && entry.start.load(Ordering::Relaxed) == start
    })
}

/// Replaces the page at `address` by an empty one, if it belongs to a guarded mapping.
fn replace(address: usize) -> bool {
    if PROCESS.load(Ordering::Relaxed) != process::id() {
        return false;
    }
    let Some(entry) = entry_of(address) else { return false };
    let size = PAGE_SIZE.load(Ordering::Relaxed);
    let page = without_provenance_mut::<c_void>(address & !(size - 1));
    // SAFETY: the page belongs to a guarded mapping (`MappingGuard::new`) that is in use, because a thread of this process touched it: it is not
    // unmapped before that thread goes on. Its contents are gone with the end of the file, and no reference points into it, as the caller
    // of `MappingGuard::new` guarantees.
    let mapped =
        unsafe { mmap_anonymous(page, size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED) };
    if mapped.is_err() {
        return false;
    }
    // SAFETY: the page that was just mapped. Like the mapping around it, forked children do not inherit it; if this fails, a child has an
    // unused page.
    let _ = unsafe { madvise(page, size, Advice::LinuxDontFork) };
    entry.replaced.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the mapping is in use, so that its `MappingGuard` exists, which keeps the sum alive.
    if let Some(sum) = unsafe { entry.sum.load(Ordering::Relaxed).as_ref() } {
        sum.fetch_add(1, Ordering::Relaxed);
    }
    true
}

/// The signal handler. Async-signal-safe: it uses atomics, and system calls that do not change `errno`, except those of `pass_on`.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid `siginfo_t` to a handler that was installed with SA_SIGINFO.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // BUS_ADRERR: a page beyond the end of the file. Other codes are signals from processes, or memory errors.
    if code == libc::BUS_ADRERR && replace(address) {
        return;
    }
    pass_on(signal, code, info, context);
}

/// Runs the previous action.
fn pass_on(signal: c_int, code: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // B3: Acquire pairs with the Release stores in `install`. SAFETY: null, or never freed nor changed.
    let Some(previous) = (unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() }) else { return };
    let is_sent = code <= 0;
    match previous.sa_sigaction {
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: sets the default action. A fault occurs again when the handler returns; a sent signal is sent again to this thread.
            // All calls are async-signal-safe.
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
            // SAFETY: SA_SIGINFO says that the handler has this type; it gets the arguments of the kernel.
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

/// Installs the handler, once per process. It is never removed.
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
    // A forked child has the handler and the previous action already.
    if PREVIOUS.load(Ordering::Relaxed).is_null() {
        pin_this_object();
        set_handler()?;
    }
    // The entries in the table of a forked child belong to its parent. Free entries are not written: a store to each would make the whole table of
    // 128 KiB resident.
    for entry in TABLE.iter().filter(|entry| entry.start.load(Ordering::Relaxed) != FREE) {
        entry.start.store(FREE, Ordering::Relaxed);
    }
    PROCESS.store(process::id(), Ordering::Relaxed);
    Ok(())
}

/// Tries to lock for a while: in a forked child the lock may be held by a thread that does not exist there.
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
    // Use the alternate stack if there is one, as handlers of stack overflows require. Keep the mask of the previous handler.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // B3: Release pairs with the Acquire in `pass_on`. Before the handler is installed, so that it always finds a value.
    PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::Release);
    let mut replaced = previous;
    call(&raw const ours, &raw mut replaced).inspect_err(|_| PREVIOUS.store(ptr::null_mut(), Ordering::Release))?;
    if replaced.sa_sigaction != previous.sa_sigaction {
        // Another thread has installed a handler in between. B3.
        PREVIOUS.store(Box::into_raw(Box::new(replaced)), Ordering::Release);
    }
    Ok(())
}

/// Keeps the shared object that contains the handler loaded forever, because signals may arrive at any time.
fn pin_this_object() {
    #[cfg(all(target_os = "linux", not(target_feature = "crt-static")))]
    // SAFETY: `info` is valid; `dladdr` fills it with a name that lives as long as the object, whose code is running. `dlopen` with NOLOAD
    // only adds NODELETE to a loaded object; for the program itself, which is never unloaded, it does nothing.
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

    fn guard(map: &MmapRaw, sum: &Arc<AtomicU64>) -> io::Result<MappingGuard> {
        // SAFETY: each test drops the guard before the mapping, and touches the mapping by `touch` alone.
        unsafe { MappingGuard::new(map.as_ptr().addr(), map.len(), sum) }
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
    fn truncated_pages_are_replaced_and_counted() -> io::Result<()> {
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
    fn optional_guards_leave_entries_for_essential_ones() -> io::Result<()> {
        let (_file, map) = mapped()?;
        let sum = Arc::new(AtomicU64::new(0));
        // SAFETY: the guards are dropped before the mapping, which is not accessed.
        let optional = || unsafe { MappingGuard::optional(map.as_ptr().addr(), map.len(), &sum) };
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
    fn entries_of_the_table_are_reused() -> io::Result<()> {
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
