//! Unsuitable locations for rings are refused, with advice; nothing is left there.

use crate::common::{Outcome, again, again_mounted, memory_place, names, part, place, process_dirs};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tracepoint_run_dir::Notice;
use tracepoint_session::sinks::TextSink;
use tracepoint_session::{Channel, Session, SessionBuilder, SessionError};

tracepoint::define_trace! {
    provider = "place";
    pub seen(n: u64) { n: u64 = n }
}

fn session() -> SessionBuilder {
    Session::builder("place")
        .events("place:*")
        .channel(Channel::discard(64 << 10).spares(2))
        .sink(TextSink::new(Vec::new()))
}

fn refused(builder: SessionBuilder, parts: &[&str]) {
    let message = match builder.start() {
        Ok(_) => panic!("it was started, and should have said {parts:?}"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn directories_of_doubtful_ownership_are_refused() -> Outcome {
    own_process!();
    let place = memory_place();
    let dir = place.path().join("session");
    let mends = [".dir(path)", "TRACEPOINT_RUN_DIR", ".in_memory()"];
    std::fs::create_dir(&dir)?;
    symlink(place.path(), dir.join("rings"))?;
    refused(session().dir(&dir), &[&["/session/rings"], mends.as_slice()].concat());
    refused(session().dir(dir.join("rings")), &["/session/rings"]);
    std::fs::remove_file(dir.join("rings"))?;

    std::fs::create_dir(dir.join("rings"))?;
    std::fs::set_permissions(dir.join("rings"), PermissionsExt::from_mode(0o770))?;
    refused(session().dir(&dir), &[&["other users may write", "chmod"], mends.as_slice()].concat());
    std::fs::set_permissions(dir.join("rings"), PermissionsExt::from_mode(0o700))?;

    // Only root can change the owner of a file.
    if std::os::unix::fs::chown(&dir, Some(12_345), None).is_ok() {
        refused(session().dir(&dir), &[&["belongs to user 12345"], mends.as_slice()].concat());
        std::os::unix::fs::chown(&dir, Some(0), None)?;
    }
    std::fs::write(place.path().join("file"), "")?;
    refused(session().dir(place.path().join("file")), &["/file"]);
    assert_eq!(names(&dir.join("rings")), Vec::<String>::new());
    session().dir(&dir).start()?.stop()?;
    Ok(())
}

#[test]
fn disk_file_systems_are_refused_by_default() -> Outcome {
    own_process!();
    // A directory that is not on a memory file system on any machine: one of this process in /proc.
    let elsewhere = format!("/proc/{}/fd", std::process::id());
    let mends = [".allow_disk_rings(true)", ".dir(path)", "TRACEPOINT_RUN_DIR", ".in_memory()"];
    refused(session().dir(&elsewhere), &[&["on a disk", "0x9fa0", &elsewhere], mends.as_slice()].concat());

    let place = place();
    let dir = place.path().join("session");
    let session = session().dir(&dir).allow_disk_rings(true).start()?;
    assert_eq!(process_dirs(&dir).len(), 1);
    session.stop()?;
    assert_eq!(names(&dir), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_missing_run_directory_is_an_error_without_an_explicit_path() -> Outcome {
    own_process!();
    if part() == "records" {
        refused(session(), &["/dev/null/run", "TRACEPOINT_RUN_DIR", ".dir(path)", ".in_memory()"]);
        let place = memory_place();
        for builder in [session().in_memory(), session().dir(place.path())] {
            let session = builder.start()?;
            assert!(matches!(session.notices()[..], [Notice::NoSharedClock { .. }]), "{:?}", session.notices());
            session.stop()?;
        }
        // The last call applies.
        session().dir("/dev/null/x").in_memory().start()?.stop()?;
        refused(session().in_memory().dir("/dev/null/x"), &["/dev/null/x"]);
        return Ok(());
    }
    let test = "a_missing_run_directory_is_an_error_without_an_explicit_path";
    assert!(again(test, "records").env("TRACEPOINT_RUN_DIR", "/dev/null/run").status()?.success());
    Ok(())
}

#[test]
fn a_full_file_system_is_reported() -> Outcome {
    own_process!();
    if let Some(dir) = part().strip_prefix("full ") {
        let dir = Path::new(dir).join("session");
        refused(session().dir(&dir), &["No space left", "bytes", "make room", &format!("{}/rings/", dir.display())]);
        assert_eq!(names(&dir), Vec::<String>::new());
        // A part that fits is accepted: the rings in memory, and nothing else.
        session().in_memory().start()?.stop()?;
        return Ok(());
    }
    let place = memory_place();
    let part = format!("full {}", place.path().display());
    let test = again_mounted("a_full_file_system_is_reported", &part, place.path(), "64k");
    assert!(test.is_none_or(|mut test| test.status().is_ok_and(|status| status.success())));
    Ok(())
}

#[test]
fn a_file_size_limit_is_reported_without_a_signal() -> Outcome {
    own_process!();
    if part() == "limited" {
        let place = memory_place();
        let dir = place.path().join("session");
        refused(session().dir(&dir), &["ulimit -f", "0-"]);
        assert_eq!(names(&dir), Vec::<String>::new());
        return Ok(());
    }
    let test = again("a_file_size_limit_is_reported_without_a_signal", "limited");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 8 && exec \"$@\"", "sh"]).arg(test.get_program()).args(test.get_args());
    limited.envs(test.get_envs().filter_map(|(key, value)| Some((key, value?))));
    // Its output is written to a pipe: a file already larger than the limit would accept no more.
    let said = limited.output()?;
    assert!(said.status.success(), "{said:?}");
    Ok(())
}

/// If the directory is removed manually, the session can create no further rings, and continues otherwise.
#[test]
fn a_session_continues_when_its_directory_is_removed() -> Outcome {
    own_process!();
    let place = memory_place();
    let dir = place.path().join("session");
    let session = session().dir(&dir).start()?;
    tracepoint::trace!(seen(1));
    // The session still creates rings for new threads.
    let began = std::time::Instant::now();
    while dir.exists() {
        if let Err(error) = std::fs::remove_dir_all(&dir) {
            assert!(began.elapsed() < std::time::Duration::from_secs(60), "{error}");
        }
    }
    for n in 2..=10 {
        std::thread::spawn(move || tracepoint::trace!(seen(n))).join().map_err(|_| "it panicked")?;
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    tracepoint::trace!(seen(11));
    let summary = session.stop()?;
    let event = crate::common::event(&summary, "place:seen");
    assert_eq!(event.fired, 11);
    assert_eq!(event.fired, event.recorded + crate::common::lost(event));
    assert!(event.recorded >= 3, "the rings that were there are used on: {event:?}");
    assert!(!dir.exists());
    Ok(())
}

#[test]
fn a_failed_start_removes_its_files() -> Outcome {
    own_process!();
    let place = memory_place();
    let dir = place.path().join("session");
    let full = tracepoint_session::sinks::CtfSink::create(place.path().join("trace"))?;
    std::fs::write(place.path().join("trace/metadata"), "mine")?;
    let error = session().dir(&dir).sink(full).start().err().ok_or("it was started")?;
    assert!(matches!(error, SessionError::Start(_)), "{error}");
    assert_eq!(names(&dir), Vec::<String>::new());
    Ok(())
}
