//! Snapshots at the first panic of the process.
//!
//! The panicking thread may hold locks of the program and of the session, and may have little stack left. Therefore a separate thread
//! writes the snapshot, without waiting for any lock that is held while code of the program runs, and the panicking thread waits for it.
//! The previous hook runs afterwards, because it may end the process. A second thread that panics meanwhile waits too: under
//! `panic = "abort"` it would otherwise end the process while the snapshot is written.

use super::SessionError;
use super::shared_recording::SharedRecording;
use crate::panic_hook::{self, PanicUse};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;
use tracepoint_reader::RecoverError;
use tracepoint_sinks::own_thread;

/// Maximum number of names that are tried for a directory.
const MAX_NAMES: u32 = 100;

/// A session that requested a snapshot.
#[derive(Debug)]
struct Entry {
    recording: Weak<SharedRecording>,
    /// The output directory; `None` once a panic has taken it. Held while the snapshot is written.
    out: Mutex<Option<PathBuf>>,
}

static ENTRIES: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());
thread_local! {
    /// True while this thread writes a snapshot: if it panics, it must not wait for itself.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

/// Registers `recording` for a snapshot to `out` at the first panic of this process from now on.
pub(super) fn register(recording: &Arc<SharedRecording>, out: PathBuf) -> Result<(), SessionError> {
    panic_hook::install(PanicUse::Snapshots, |_| write_all()).map_err(SessionError::Thread)?;
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    entries.retain(|entry| entry.recording.strong_count() > 0);
    entries.push(Arc::new(Entry { recording: Arc::downgrade(recording), out: Mutex::new(Some(out)) }));
    Ok(())
}

/// Writes the snapshots that are not written yet, and waits for those that other threads are writing.
fn write_all() {
    if WRITES.get() {
        return;
    }
    let entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for entry in entries {
        let mut out = entry.out.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(recording), Some(out)) = (entry.recording.upgrade(), out.take()) else { continue };
        let write = {
            let (recording, out) = (Arc::clone(&recording), out.clone());
            move || {
                WRITES.set(true);
                write_to_free(&recording, &out)
            }
        };
        let message = match own_thread::spawn("tracepoint-snapshot", write) {
            Ok(thread) => thread.join().unwrap_or_else(|_| Some("writing it panicked".to_owned())),
            Err(_) => write_to_free(&recording, &out),
        };
        if let Some(message) = message {
            print(&format!("tracepoint: {message}\n"));
        }
    }
}

/// Writes to standard error without its lock, which this thread may hold.
#[cfg(unix)]
fn print(message: &str) {
    let _ = rustix::io::write(std::io::stderr(), message.as_bytes());
}

/// Writes to standard error.
#[cfg(not(unix))]
fn print(message: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes());
}

/// Writes a snapshot to `out`, or next to it if it exists. Returns a message for the user; `None` if the recording has ended.
fn write_to_free(recording: &SharedRecording, out: &Path) -> Option<String> {
    let mut path = out.to_owned();
    for number in 1..=MAX_NAMES {
        match recording.snapshot(&path) {
            Ok(summary) => {
                let (name, path) = (recording.name(), summary.path.display());
                return Some(format!(
                    "snapshot of the session {name} at the panic: {} events in {path}",
                    summary.events
                ));
            }
            Err(SessionError::Snapshot { source: RecoverError::NotEmpty { .. }, .. }) if number < MAX_NAMES => {
                path = beside(out, number);
            }
            Err(SessionError::Stopped { .. }) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
    None
}

/// Returns `OUT-PID-TIME`, with a number from the second one on.
fn beside(out: &Path, number: u32) -> PathBuf {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(['-', ':'], "");
    let mut name = out.as_os_str().to_owned();
    name.push(format!("-{}-{time}", process::id()));
    if number > 1 {
        name.push(format!("-{number}"));
    }
    name.into()
}
