//! Two hooks, by which other crates learn of registrations and switches.
//!
//! The agent is notified of new markers, and of loaded objects that may have some, because the rules of its sessions may match them. The bridge to
//! another library is notified when subscriptions start or end, so that it can update the callsites of that library.

use std::sync::OnceLock;

static REGISTERED: OnceLock<fn(Registration)> = OnceLock::new();
static SWITCHED: OnceLock<fn()> = OnceLock::new();

/// The object of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// Markers, at run time.
    Markers,
    /// A linked object, registered by its constructor: the thread may be inside `dlopen`, and hold the dynamic linker's lock.
    Object,
}

/// Calls the hook of [`on_register`].
pub fn announce(what: Registration) {
    if let Some(hook) = REGISTERED.get() {
        hook(what);
    }
}

/// Sets the `hook` that is called after a registration, on the same thread. Only the first hook of the process counts.
pub fn on_register(hook: fn(Registration)) {
    let _ = REGISTERED.set(hook);
}

/// Calls the hook of [`on_switch`].
pub fn switched() {
    if let Some(hook) = SWITCHED.get() {
        hook();
    }
}

/// Sets the `hook` that is called, without any lock of this crate held, after subscriptions were started or ended, and after the agent has applied
/// the rules of its sessions to new markers. Only the first hook of the process counts.
pub fn on_switch(hook: fn()) {
    let _ = SWITCHED.set(hook);
}
