//! Ring files that are truncated while a session runs: the program ends by SIGBUS, or, if the session is configured so, continues and
//! reports the loss; and SIGBUS with another cause has the same effect as before.
#![cfg(target_os = "linux")]

use crate::common::{Outcome, again, event, memory_place, part, process_dirs, ring_files};
use memmap2::MmapOptions;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use tracepoint_reader::{Item, Trace, Value};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session, SessionBuilder, SessionError};

tracepoint::define_trace! {
    provider = "cut";
    pub seen(phase: u64, n: u64) { phase: u64 = phase, n: u64 = n }
}

const BUS: i32 = libc::SIGBUS;

fn session(place: &Path, channel: Channel) -> Result<SessionBuilder, Box<dyn std::error::Error>> {
    let sink = CtfSink::create(place.join("trace"))?;
    Ok(Session::builder("cut").events("cut:*").channel(channel.spares(2)).dir(place.join("session")).sink(sink))
}

/// Truncates all existing rings to `len` bytes.
fn cut_off(place: &Path, len: u64) -> Outcome {
    for ring in process_dirs(&place.join("session")).iter().flat_map(|dir| ring_files(dir)) {
        File::options().write(true).open(ring)?.set_len(len)?;
    }
    Ok(())
}

/// Returns whether the ring of this thread was created after all were truncated.
fn owns_whole_ring(place: &Path) -> bool {
    const SIZE: usize = 64 << 10;
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    let rings = process_dirs(&place.join("session")).into_iter().flat_map(|dir| ring_files(&dir));
    rings.filter_map(|ring| std::fs::read(ring).ok()).filter(|ring| ring.len() > SIZE).any(|ring| {
        let word = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|n| ring[at + n]));
        // Its state is "owned": see docs/format-ring.md.
        (word(256), word(260)) == (1, tid)
    })
}

fn fire(phase: u64) {
    for n in 0..20_000 {
        tracepoint::trace!(seen(phase, n));
    }
}

/// Returns the exit status of the test with this part, in another process.
fn ending(test: &str, what: &str) -> ExitStatus {
    let place = memory_place();
    // A process that is expected to die writes no core file.
    rustix::process::setrlimit(
        rustix::process::Resource::Core,
        rustix::process::Rlimit { current: Some(0), ..rustix::process::getrlimit(rustix::process::Resource::Core) },
    )
    .expect("a lower limit");
    again(test, &format!("{what} {}", place.path().display())).status().expect("it starts")
}

/// Records, continues after its ring is truncated, and reports the loss at the end.
fn go_on(place: &Path, channel: Channel, len: u64) -> Outcome {
    let session = session(place, channel)?.survive_cut_off_rings(true).start()?;
    fire(0);
    cut_off(place, len)?;
    let busy = thread::spawn(|| fire(1));
    fire(1);
    busy.join().map_err(|_| "it panicked")?;
    // This thread gets other rings, initially perhaps truncated spare ones. Events in a ring that was not truncated are recorded.
    let recorded = || {
        let status = session.status();
        status.events().iter().find(|event| event.name == "cut:seen").map_or(0, |event| event.recorded)
    };
    loop {
        let before = recorded();
        tracepoint::trace!(seen(2, 0));
        match owns_whole_ring(place) {
            // A ring without its end can be used until the thread reaches the end.
            false => fire(1),
            true if recorded() > before => break,
            // Full, until the drain has run.
            true => thread::yield_now(),
        }
    }
    let summary = match session.stop() {
        Ok(summary) => summary,
        // The kernel reads lost memory for a sink before the program does: the write fails, without a signal.
        Err(SessionError::Sinks { summary, .. }) => *summary,
        Err(error) => return Err(error.into()),
    };
    assert!(summary.cut_off_pages > 0, "{summary:?}");
    assert!(summary.account().is_some_and(|account| !account.complete), "{summary:?}");
    assert!(event(&summary, "cut:seen").recorded > 0);
    let mut last = 0;
    for item in Trace::open(&place.join("trace"))?.items() {
        match item {
            Item::Event(event) => {
                let fields = event.fields.as_ref().ok_or("an event without fields")?;
                last = last.max(fields.get("phase").and_then(Value::as_u64).ok_or("no phase")?);
            }
            Item::Loss(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    assert_eq!(last, 2, "what came at last is recorded");
    Ok(())
}

#[test]
fn a_guarded_program_continues_and_reports_the_loss() -> Outcome {
    own_process!();
    let part = part();
    if let [policy, len, place] = part.split(' ').collect::<Vec<_>>()[..] {
        let channel = if policy == "discard" { Channel::discard(64 << 10) } else { Channel::overwrite(64 << 10) };
        return go_on(Path::new(place), channel, len.parse()?);
    }
    for policy in ["discard", "overwrite"] {
        // All; all except the header; from the middle of the packets.
        for len in [0, 4096, 30_000] {
            let status = ending("a_guarded_program_continues_and_reports_the_loss", &format!("{policy} {len}"));
            assert!(status.success(), "{policy}, cut to {len}: {status}");
        }
    }
    Ok(())
}

#[test]
fn a_program_without_the_guard_is_killed() -> Outcome {
    own_process!();
    if let Some(("ends", place)) = part().split_once(' ') {
        let _session = session(Path::new(place), Channel::discard(64 << 10))?.start()?;
        fire(0);
        cut_off(Path::new(place), 0)?;
        loop {
            fire(1);
        }
    }
    assert_eq!(ending("a_program_without_the_guard_is_killed", "ends").signal(), Some(BUS));
    Ok(())
}

extern "C" fn plain(_: i32) {
    // SAFETY: ends the process, at any time.
    unsafe { libc::_exit(42) };
}

extern "C" fn informed(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the siginfo is the kernel's, or was passed on unchanged.
    let code = unsafe { (*info).si_code };
    // SAFETY: ends the process, at any time.
    unsafe { libc::_exit(if code == libc::BUS_ADRERR { 43 } else { 44 }) };
}

type Informed = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Sends SIGBUS to this thread.
fn raise() {
    // SAFETY: takes a plain number; the test expects what follows.
    unsafe { libc::raise(BUS) };
}

/// Causes another SIGBUS while the rings are guarded.
fn other_signal(what: &str, place: &Path) -> Outcome {
    let handler = match what {
        "plain" => Some((plain as extern "C" fn(i32) as usize, 0)),
        "informed" => Some((informed as Informed as usize, libc::SA_SIGINFO)),
        "default" => Some((libc::SIG_DFL, 0)),
        "ignored" => Some((libc::SIG_IGN, 0)),
        _ => None,
    };
    if let Some((handler, flags)) = handler {
        // SAFETY: zero is a valid value of the other fields. The handlers end the process, which is allowed there.
        let failed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            (action.sa_sigaction, action.sa_flags) = (handler, flags);
            libc::sigaction(BUS, &raw const action, std::ptr::null_mut())
        };
        assert_eq!(failed, 0);
    }
    let session = session(place, Channel::discard(64 << 10))?.survive_cut_off_rings(true).start()?;
    fire(0);
    cut_off(place, 0)?;
    fire(1);
    if what == "ignored" {
        // A sent signal is ignored, as before; the next one is not sent.
        raise();
    }
    let file = tempfile::tempfile()?;
    file.set_len(8192)?;
    let map = MmapOptions::new().len(8192).map_raw(&file)?;
    file.set_len(0)?;
    if what == "sent" {
        raise();
    }
    // SAFETY: inside the mapping, whose file is cut off: this is the signal that is wanted.
    unsafe { map.as_mut_ptr().add(4096).write_volatile(1) };
    drop(session);
    Err("it goes on".into())
}

#[test]
fn other_bus_errors_are_passed_on() -> Outcome {
    own_process!();
    if let Some((what, place)) = part().split_once(' ') {
        return other_signal(what, Path::new(place));
    }
    let ends = |what| {
        let status = ending("other_bus_errors_are_passed_on", what);
        (status.code(), status.signal())
    };
    assert_eq!(ends("plain"), (Some(42), None));
    assert_eq!(ends("informed"), (Some(43), None));
    for what in ["default", "ignored", "as it is", "sent"] {
        assert_eq!(ends(what.split(' ').next().unwrap_or_default()), (None, Some(BUS)), "{what}");
    }
    Ok(())
}
