//! Acknowledgements as files: `acks/PID-START.json` in the directory of a session, which may be removed at any time.
//!
//! Agents take no lock, so no other process can make them wait. A controller that removes a session removes its file first, then the
//! existing acknowledgements, then the directories. An agent writes its acknowledgement first, and then checks that the session's file
//! still exists. If it does, the remover will find the acknowledgement; if not, the agent removes it and the directories. Either way the
//! last process leaves nothing. If an agent is killed in between, its acknowledgement stays until the sessions are listed. A new session of
//! that name may use the same directory by then: only empty directories are removed, and a process that misses one makes it again.

use super::Ack;
use crate::json::replace_json_with_spare;
use crate::layout::SESSION;
use crate::private_dir::{DirError, PrivateDir};
use crate::session_dir::TRIES;
use std::io;

/// The directory of the acknowledgements in that of a session.
pub const ACKS: &str = "acks";
/// The end of the name of an acknowledgement, after the name of the process's entry.
pub const SUFFIX: &str = ".json";

/// Writes the acknowledgement of `process`, the name of its entry, into `dir`, the directory of the session called `session`. Leaves
/// nothing if the session was removed meanwhile.
pub fn put(sessions: &PrivateDir, session: &str, dir: &PrivateDir, process: &str, ack: &Ack) -> Result<(), DirError> {
    let name = file_name(process);
    let is_gone = || matches!(dir.file_len(SESSION), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let mut written = write(dir, &name, ack);
    for _ in 1..TRIES {
        // Another agent, which acknowledged a removed session of that name, removed the directory while it was empty.
        if !matches!(&written, Err(error) if error.is_missing()) || is_gone() {
            break;
        }
        written = write(dir, &name, ack);
    }
    if is_gone() {
        if let Ok(acks) = dir.open_subdir(ACKS) {
            acks.remove_file(&name);
            acks.remove_file(&PrivateDir::spare(&name));
        }
        dir.remove_empty(ACKS);
        sessions.remove_empty(session);
    }
    written
}

/// Reserves space for the first acknowledgement of `process` in `dir`, the directory of a session, before the session's rings can use it. A
/// [`put`] must follow.
pub fn reserve(dir: &PrivateDir, process: &str) {
    if let Ok(acks) = dir.subdir(ACKS) {
        acks.keep_spare(&file_name(process), 0);
    }
}

fn file_name(process: &str) -> String {
    format!("{process}{SUFFIX}")
}

fn write(dir: &PrivateDir, name: &str, ack: &Ack) -> Result<(), DirError> {
    let acks = dir.subdir(ACKS)?;
    replace_json_with_spare(&acks, name, ack).map_err(|error| acks.failed("write", name, error))
}

/// Removes all acknowledgements. The session's file is already removed.
pub fn remove_all(dir: &PrivateDir) {
    if let Ok(acks) = dir.open_subdir(ACKS) {
        dir.remove_with_files(ACKS, &acks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use tracepoint_reader::process::ProcessKey;

    #[test]
    fn an_agent_that_answers_late_leaves_nothing_of_a_session() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let sessions = PrivateDir::at(temp.path())?;
        let (ack, over) = (Ack::new(ProcessKey::of_this_process(), "p".to_owned()), AtomicBool::new(false));
        thread::scope(|scope| {
            for process in ["1-1", "2-2"] {
                let (sessions, ack, over) = (&sessions, &ack, &over);
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        // The session exists now, and may be removed before `put` writes.
                        let dir = sessions.open_subdir("s").ok().filter(|dir| dir.file_len(SESSION).is_ok());
                        let _ = dir.map(|dir| put(sessions, "s", &dir, process, ack));
                    }
                });
            }
            for _ in 0..1000 {
                // An agent may remove the directory between two steps.
                let Some(dir) = sessions.subdir("s").ok().filter(|dir| dir.replace(SESSION, b"").is_ok()) else {
                    continue;
                };
                thread::yield_now();
                dir.remove_file(SESSION);
                remove_all(&dir);
                sessions.remove_empty("s");
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(sessions.names()?, [""; 0]);
        Ok(())
    }
}
