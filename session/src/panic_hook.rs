//! The panic hook, which precedes the previously installed one: first the snapshots of sessions, then the triggers.
//!
//! The hook stays installed; while no session uses it, it only calls the previous one. A panic inside a probe is caught and counted, so the
//! hook ignores it, unless it ends the process. The handlers run on the panicking thread, which may hold locks of the program and of
//! sessions: a handler waits only for threads of this crate.

use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::{io, process, thread};

type Handler = fn(&PanicHookInfo<'_>);

/// The handlers, in the order in which the hook calls them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PanicUse {
    Snapshots,
    Triggers,
}

static HANDLERS: [OnceLock<Handler>; 2] = [const { OnceLock::new() }; 2];
/// The process whose sessions the handlers serve: in a forked child their locks may never be released. Relaxed: a process stores its own id
/// before a handler has sessions.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Calls `handler` at each panic of this process from now on. Installs the hook.
pub(crate) fn install(used_for: PanicUse, handler: Handler) -> io::Result<()> {
    static INSTALLED: Once = Once::new();
    if thread::panicking() {
        // A panicking thread may not install a hook.
        let installed = thread::Builder::new().spawn(|| INSTALLED.call_once(install_hook))?;
        installed.join().unwrap_or_default();
    } else {
        INSTALLED.call_once(install_hook);
    }
    HANDLERS[used_for as usize].get_or_init(|| handler);
    PROCESS.store(process::id(), Ordering::Relaxed);
    Ok(())
}

fn install_hook() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_caught = tracepoint_core::in_probe() && !cfg!(panic = "abort");
        if !is_caught && PROCESS.load(Ordering::Relaxed) == process::id() {
            HANDLERS.iter().filter_map(OnceLock::get).for_each(|handler| handler(info));
        }
        previous(info);
    }));
}
