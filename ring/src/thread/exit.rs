//! How the table learns that a thread ends.
//!
//! A thread-local with a destructor would allocate when it is registered, which a signal handler must not do. POSIX keys do
//! not allocate in glibc for the first 32 keys of a process, and their destructors run after those of Rust's thread-locals, so
//! that destructors may still trace. Where there are no POSIX keys the thread-local is used.

#[cfg(posix)]
pub(super) use posix::{at_thread_exit, pin_this_object, prepare, thread_id};

#[cfg(not(posix))]
pub(super) use portable::{at_thread_exit, pin_this_object, prepare, thread_id};

#[cfg(posix)]
mod posix {
    use crate::thread::table::{ThreadSlot, leave};
    use std::ffi::c_void;
    use std::sync::OnceLock;
    #[cfg(all(linux_kernel, not(target_feature = "crt-static")))]
    use std::sync::atomic::{AtomicBool, Ordering};

    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

    /// Under the control lock, so that no child is forked in the middle of it.
    pub(in crate::thread) fn prepare() {
        KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: `key` is a valid place for the new key, and `thread_ends` has the signature of a key destructor.
            let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
            (failed == 0).then_some(key)
        });
    }

    /// Keeps the object that this code is in loaded for ever, as Rust's own thread-locals with destructors do: threads that have
    /// fired call `thread_ends` when they end, whatever was unloaded meanwhile.
    ///
    /// Asks the dynamic linker: no lock of ours is held. Several threads may do it at once.
    pub(in crate::thread) fn pin_this_object() {
        #[cfg(all(linux_kernel, not(target_feature = "crt-static")))]
        {
            static PINNED: AtomicBool = AtomicBool::new(false);
            // Relaxed: what it tells of was done under the dynamic linker's lock, and nothing else hangs on it.
            if PINNED.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: `info` is a valid place; `dladdr` fills it with a name that lives as long as the object, which is loaded, as it
            // runs. `dlopen` with NOLOAD only adds NODELETE to what is loaded; if it does not know the name (of the program itself,
            // which is never unloaded), it does nothing.
            unsafe {
                let mut info: libc::Dl_info = std::mem::zeroed();
                if libc::dladdr(thread_ends as *const c_void, &raw mut info) != 0 && !info.dli_fname.is_null() {
                    libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
                }
            }
            PINNED.store(true, Ordering::Relaxed);
        }
    }

    /// Arranges that `slot` is released when the calling thread ends. Without a key the slot stays claimed for ever.
    pub(in crate::thread) fn at_thread_exit(slot: &'static ThreadSlot) {
        if let Some(Some(key)) = KEY.get() {
            // SAFETY: the key was created by `prepare` and is never deleted; the value is a pointer to a static.
            unsafe { libc::pthread_setspecific(*key, std::ptr::from_ref(slot).cast()) };
        }
    }

    extern "C" fn thread_ends(slot: *mut c_void) {
        // SAFETY: the only values stored under the key are `&'static ThreadSlot`s of the thread that ends.
        leave(unsafe { &*slot.cast::<ThreadSlot>() });
    }

    /// The kernel's id of the calling thread on Linux; elsewhere the process id.
    pub(in crate::thread) fn thread_id() -> u32 {
        #[cfg(linux_kernel)]
        // SAFETY: gettid takes nothing and cannot fail.
        let id = unsafe { libc::gettid() };
        #[cfg(not(linux_kernel))]
        // SAFETY: getpid takes nothing and cannot fail.
        let id = unsafe { libc::getpid() };
        id.cast_unsigned()
    }
}

#[cfg(not(posix))]
mod portable {
    use crate::thread::table::{ThreadSlot, leave};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Leave(Cell<Option<&'static ThreadSlot>>);

    impl Drop for Leave {
        fn drop(&mut self) {
            if let Some(slot) = self.0.get() {
                leave(slot);
            }
        }
    }

    thread_local! {
        static LEAVE: Leave = const { Leave(Cell::new(None)) };
    }

    pub(in crate::thread) fn prepare() {}

    /// Thread-locals with destructors see to that.
    pub(in crate::thread) fn pin_this_object() {}

    /// Arranges that `slot` is released when the calling thread ends.
    pub(in crate::thread) fn at_thread_exit(slot: &'static ThreadSlot) {
        // A thread whose locals are being destroyed keeps its slot: the table loses one place, nothing else.
        let _ = LEAVE.try_with(|leave| leave.0.set(Some(slot)));
    }

    /// A number of the thread's own, counted from one: there is no portable thread id.
    pub(in crate::thread) fn thread_id() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}
