//! The same tracepoints in other tools: bpftrace, perf, gdb and SystemTap (USDT probes).
//!
//! With the cargo feature `usdt`, each [`define_trace!`](crate::define_trace) with a field block and each
//! [`trace_mark!`](crate::trace_mark) has a note in the program's file, which these tools use to find it. `readelf -n` shows the notes, and
//! `tracectl usdt list` also shows the names and types of the fields. The book's page about other tools describes their use, and the cost of a
//! hit.
//!
//! A tool that attaches increments a word in the memory of the program. The agent's thread (feature `session`) checks these words five
//! times a second, and switches the events on. A program without an agent must call [`poll`].
//!
//! Supported on x86-64 and aarch64 Linux. Markers registered at run time have no notes.

mod emit;

use crate::hooks;
use crate::marker::Marker;
use crate::marker::note::Note;
use crate::registry::all_markers;
use crate::site::{KeyBatch, SiteSwitchError};
use tracepoint_ring::update;

/// True if the declarations of this program have notes: the feature `usdt` is on, and the target supports notes.
pub const IS_ENABLED: bool = cfg!(noted_markers);

/// Checks once for attached tools: switches on events with a tool, and off events whose tools are gone. Returns the number of events with a tool.
///
/// The agent does this automatically. Without an agent, call it periodically, for example in the main loop; between two calls attaching
/// and detaching have no effect. Without the feature `usdt` it does nothing and returns 0.
///
/// ```
/// tracepoint::runtime::usdt::poll()?;
/// # Ok::<(), tracepoint::probe::SiteSwitchError>(())
/// ```
///
/// One call reads a word for each event of the program. If there is a change, it takes as long as starting or ending a session, and
/// waits for threads that are inside an event: do not call it in probes or signal handlers.
///
/// # Errors
///
/// If the sites cannot be switched on.
pub fn poll() -> Result<usize, SiteSwitchError> {
    if !IS_ENABLED {
        return Ok(0);
    }
    let locked = update::lock();
    let markers = all_markers(&locked);
    let noted = markers.iter().filter_map(|marker| Some((*marker, marker.note?)));
    let (mut attaching, mut detaching) = (Vec::new(), Vec::new());
    for (marker, note) in noted.clone() {
        match (note.is_wanted(), note.is_attached(&locked)) {
            (true, false) => attaching.push((marker, note)),
            (false, true) => detaching.push((marker, note)),
            _ => {}
        }
    }
    let attached = noted.filter(|(_, note)| note.is_wanted()).count();
    if attaching.is_empty() && detaching.is_empty() {
        return Ok(attached);
    }
    let mut garbage = Vec::new();
    let mut publish = |marker: &Marker, note: &'static Note, attached| {
        let mut entries = marker.entries(&locked);
        note.set_attached(attached, &mut entries, &locked);
        garbage.extend(marker.publish(entries, &locked));
    };
    let (mut on, mut off) = (KeyBatch::on(&locked), KeyBatch::off(&locked));
    for (marker, note) in &attaching {
        publish(marker, note, true);
        marker.add_keys(&mut on);
    }
    for (marker, _) in &detaching {
        marker.add_keys(&mut off);
    }
    // Switching off never fails.
    let _ = off.apply();
    let switched = on.apply();
    if switched.is_err() {
        detaching.append(&mut attaching);
    }
    for (marker, note) in detaching {
        publish(marker, note, false);
    }
    drop(locked);
    update::retire(garbage);
    hooks::switched();
    switched.map(|()| attached)
}
