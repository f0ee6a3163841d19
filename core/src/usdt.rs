//! The same tracepoints in other tools: bpftrace, perf, gdb and SystemTap (USDT probes).
//!
//! With the cargo feature `usdt`, each [`define_trace!`](crate::define_trace) with a field block and each
//! [`trace_mark!`](crate::trace_mark) has a note in the program's file, by which these tools find it: `readelf -n` shows them, and
//! `tracectl usdt list` with the names and types of the fields. The book's page about other tools says how to use them, and what a hit
//! costs.
//!
//! A tool that attaches adds to a word in the memory of the program. The thread of the agent (feature `session`) looks at these words five
//! times a second, and switches the events on. A program without an agent calls [`poll`].
//!
//! x86-64 and aarch64 Linux. Markers that are registered at run time have no notes.

mod emit;

use crate::key::KeyBatch;
use crate::marker::note::Note;
use crate::marker::{Marker, runtime};
use crate::registry::all_markers;
use crate::site::SwitchError;
use tracepoint_ring::update;

/// Whether the declarations of this program have notes: the feature `usdt`, on a target that has them.
pub const IS_ENABLED: bool = cfg!(noted_markers);

/// Looks once which events have a tool attached, switches those on, and those off whose tools are gone. Returns how many have one.
///
/// The agent does this by itself. Without one, call it now and then, for example in the loop of the program; between two calls attaching
/// and detaching have no effect. Without the feature `usdt` it does nothing and returns 0.
///
/// ```
/// tracepoint::usdt::poll()?;
/// # Ok::<(), tracepoint::SwitchError>(())
/// ```
///
/// One call reads a word for each event of the program. When something has changed it takes as long as starting or ending a session, and
/// waits for threads that are inside an event: call it from no probe and no signal handler.
///
/// # Errors
///
/// If the sites cannot be switched on.
pub fn poll() -> Result<usize, SwitchError> {
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
    runtime::switched();
    switched.map(|()| attached)
}
