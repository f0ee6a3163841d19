//! The time namespace of this process, from `/proc`.

use super::TimeNamespace;
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::RwLock;

thread_local! {
    /// The inode of the namespace, and its offsets. Thread-local, so that a forked child finds no lock held.
    static KNOWN: Cell<Option<(u64, TimeNamespace)>> = const { Cell::new(None) };
}

/// The first offsets found by any thread. Only tried, never waited for: a child forked while another thread wrote finds it locked for ever.
static FIRST: RwLock<Option<TimeNamespace>> = RwLock::new(None);

pub(super) fn namespace() -> Option<TimeNamespace> {
    let inode = |name: &str| fs::metadata(format!("/proc/self/ns/{name}")).map(|link| link.ino());
    let Ok(own) = inode("time") else {
        // A process without `/proc`, for example after `chroot`, or a kernel without time namespaces.
        return if fs::exists("/proc/self/ns").unwrap_or(false) {
            Some(TimeNamespace::default())
        } else {
            FIRST.try_read().ok().and_then(|first| *first)
        };
    };
    if let Some((_, known)) = KNOWN.get().filter(|(inode, _)| *inode == own) {
        return Some(known);
    }
    inode("time_for_children").ok().filter(|children| *children == own)?;
    let found = TimeNamespace::parse(&fileguard::read_to_string("/proc/self/timens_offsets").ok()?)?;
    KNOWN.set(Some((own, found)));
    if let Ok(mut first) = FIRST.try_write() {
        first.get_or_insert(found);
    }
    Some(found)
}
