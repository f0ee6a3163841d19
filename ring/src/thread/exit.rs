//! Detects the end of a thread.
//!
//! A thread-local with a destructor allocates when it is registered, which a signal handler must not do. The first 32 POSIX keys of a process
//! do not allocate in glibc, and their destructors run after those of Rust's thread-locals, so that destructors can still be traced. Targets
//! without POSIX keys use the thread-local.

#[cfg(posix)]
pub(super) use posix::{at_thread_exit, pin_this_object, prepare, thread_id};

#[cfg(not(posix))]
pub(super) use portable::{at_thread_exit, pin_this_object, prepare, thread_id};

/// The function called with the slot of a thread that ends.
type Leave = fn(&'static super::ThreadSlot);

#[cfg(posix)]
mod posix {
    use super::Leave;
    use crate::thread::ThreadSlot;
    use std::ffi::c_void;
    use std::sync::OnceLock;
    #[cfg(all(linux_kernel, not(target_feature = "crt-static")))]
    use std::sync::atomic::{AtomicBool, Ordering};

    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    static LEAVE: OnceLock<Leave> = OnceLock::new();

    /// Creates the key; its destructor calls `leave`. The update lock is held, so that no child is forked in the middle of this.
    pub(in crate::thread) fn prepare(leave: Leave) {
        LEAVE.get_or_init(|| leave);
        KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: `key` is a valid place for the new key, and `thread_ends` has the signature of a key destructor.
            let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
            (failed == 0).then_some(key)
        });
    }

    /// Keeps the object that contains this code loaded forever, like Rust's own thread-locals with destructors do: threads that have fired
    /// call `thread_ends` when they end, whatever has been unloaded by then.
    ///
    /// Calls the dynamic linker, so the caller must not hold a lock of this crate. Several threads may call it at the same time.
    pub(in crate::thread) fn pin_this_object() {
        #[cfg(all(linux_kernel, not(target_feature = "crt-static")))]
        {
            static PINNED: AtomicBool = AtomicBool::new(false);
            // Relaxed: it only saves a repetition; the dynamic linker's own lock orders its state.
            if PINNED.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: `info` is a valid place. `dladdr` stores a name in it that lives as long as the object, which is loaded, because its code
            // is running. `dlopen` with NOLOAD only adds NODELETE to an object that is loaded; if it does not know the name (of the
            // program itself, which is never unloaded), it does nothing.
            unsafe {
                let mut info: libc::Dl_info = std::mem::zeroed();
                if libc::dladdr(thread_ends as *const c_void, &raw mut info) != 0 && !info.dli_fname.is_null() {
                    libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
                }
            }
            PINNED.store(true, Ordering::Relaxed);
        }
    }

    /// Registers `slot` to be released when the calling thread ends. Without a key the slot stays claimed forever.
    pub(in crate::thread) fn at_thread_exit(slot: &'static ThreadSlot) {
        if let Some(Some(key)) = KEY.get() {
            // SAFETY: the key was created by `prepare` and is never deleted; the value is a pointer to a static.
            unsafe { libc::pthread_setspecific(*key, std::ptr::from_ref(slot).cast()) };
        }
    }

    extern "C" fn thread_ends(slot: *mut c_void) {
        if let Some(leave) = LEAVE.get() {
            // SAFETY: the only values stored under the key are the `&'static ThreadSlot`s of `at_thread_exit`.
            leave(unsafe { &*slot.cast::<ThreadSlot>() });
        }
    }

    /// The kernel's id of the calling thread on Linux; elsewhere the process id.
    pub(in crate::thread) fn thread_id() -> u32 {
        #[cfg(linux_kernel)]
        // SAFETY: gettid takes no arguments and cannot fail.
        let id = unsafe { libc::gettid() };
        #[cfg(not(linux_kernel))]
        // SAFETY: getpid takes no arguments and cannot fail.
        let id = unsafe { libc::getpid() };
        id.cast_unsigned()
    }
}

#[cfg(not(posix))]
mod portable {
    use super::Leave;
    use crate::thread::ThreadSlot;
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static LEAVE: OnceLock<Leave> = OnceLock::new();

    struct OnExit(Cell<Option<&'static ThreadSlot>>);

    impl Drop for OnExit {
        fn drop(&mut self) {
            if let (Some(leave), Some(slot)) = (LEAVE.get(), self.0.get()) {
                leave(slot);
            }
        }
    }

    thread_local! {
        static ON_EXIT: OnExit = const { OnExit(Cell::new(None)) };
    }

    pub(in crate::thread) fn prepare(leave: Leave) {
        LEAVE.get_or_init(|| leave);
    }

    /// Does nothing: a thread-local with a destructor already keeps the object loaded.
    pub(in crate::thread) fn pin_this_object() {}

    /// Registers `slot` to be released when the calling thread ends.
    pub(in crate::thread) fn at_thread_exit(slot: &'static ThreadSlot) {
        // A thread whose locals are being destroyed keeps its slot: the table loses one slot, without further effects.
        let _ = ON_EXIT.try_with(|on_exit| on_exit.0.set(Some(slot)));
    }

    /// A number for the thread, counted from one: there is no portable thread id.
    pub(in crate::thread) fn thread_id() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}
