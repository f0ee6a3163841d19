//! The directories that are read and written, and their order.

use std::fs;
use std::path::Path;

use super::taken;
use crate::ring_file::{Remains, Shape, Tracer};
use tracepoint_reader::recover::recover_with;
use tracepoint_reader::{RecoverError, recover, verify};

#[test]
fn an_empty_directory_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let error = recover(place.path(), &out).unwrap_err().to_string();
    assert!(error.contains("there are no ring files in it; name the directory of a process"), "{error}");
    let error = recover(&place.path().join("missing"), &out).unwrap_err().to_string();
    assert!(error.contains("there is no such directory"), "{error}");
    let mut spare = Tracer::new(Shape::default());
    spare.put(0, &[0; 8]);
    let remains = Remains::of(&spare);
    let error = recover(&remains.process, &remains.out()).unwrap_err().to_string();
    assert!(error.contains("had not begun to record"), "{error}");
}

/// A process writes its metadata before it switches on any event.
#[test]
fn a_process_that_was_killed_before_its_metadata_has_lost_nothing() {
    let mut spare = Tracer::new(Shape::default());
    spare.put(0, &[0; 8]);
    for spare in [spare, Tracer::new(Shape::default())] {
        let remains = Remains::of(&spare);
        fs::write(remains.process.join("metadata"), "").unwrap();
        assert!(matches!(recover(&remains.process, &remains.out()), Err(RecoverError::NotBegun { .. })));
        fs::remove_file(remains.process.join("metadata")).unwrap();
        assert!(matches!(recover(&remains.process, &remains.out()), Err(RecoverError::NotBegun { .. })));
        // The only process is now another one next to it.
        let other = remains.process.with_file_name("7-7");
        let mut tracer = Tracer::new(Shape::default());
        tracer.fire(0);
        fs::create_dir(&other).unwrap();
        fs::write(other.join("metadata"), crate::ring_file::metadata()).unwrap();
        fs::write(other.join("0-0.ring"), &tracer.bytes).unwrap();
        let recovered = recover(other.parent().unwrap(), &remains.out()).unwrap();
        assert_eq!((recovered.processes.len(), recovered.is_complete(), recovered.missing()), (1, true, 0));
        assert_eq!(recovered.not_begun, std::slice::from_ref(&remains.process));
    }
}

/// Removed metadata counts as missing if a ring has events.
#[test]
fn events_without_metadata_are_an_error() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of(&tracer);
    fs::remove_file(remains.process.join("metadata")).unwrap();
    assert!(matches!(recover(&remains.process, &remains.out()), Err(RecoverError::Read(_))));
}

/// Root recovers the rings of any user, who could name any file with a symbolic link.
#[test]
fn links_in_place_of_files_are_not_followed() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    for name in ["metadata", "outputs", "0-0.ring"] {
        let remains = Remains::of(&tracer);
        let secret = remains.process.with_file_name("secret");
        let path = remains.process.join(name);
        fs::copy(&path, &secret).unwrap_or_else(|_| fs::write(&secret, "ctf relative/secret\n").map(|()| 0).unwrap());
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        let told = match recover(&remains.process, &remains.out()) {
            Ok(recovered) => recovered.processes[0].notes.join("\n"),
            Err(error) => error.to_string(),
        };
        // A symbolic link is not a ring.
        let expected =
            if name == "0-0.ring" { "there are no ring files in it" } else { "a link, which is not followed" };
        assert!(told.contains(expected) && !told.contains("relative/secret"), "{name}: {told}");
    }
}

#[test]
fn an_output_that_is_not_empty_is_refused() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of(&tracer);
    fs::create_dir(remains.out()).unwrap();
    fs::write(remains.out().join("mine"), "x").unwrap();
    let error = recover(&remains.session(), &remains.out()).unwrap_err();
    assert!(matches!(&error, RecoverError::NotEmpty { found, .. } if found == "mine"), "{error}");
    assert_eq!(fs::read_dir(remains.out()).unwrap().count(), 1);
    let file = remains.out().join("mine");
    let error = recover(&remains.session(), &file).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
}

/// Several processes, found from the run directory, from `sessions` and from the session.
#[test]
fn each_process_has_a_directory() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let place = tempfile::tempdir().unwrap();
    let add = |session: &str, process: &str| {
        let directory = place.path().join("sessions").join(session).join("rings").join(process);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("metadata"), crate::ring_file::metadata()).unwrap();
        fs::write(directory.join("0-0.ring"), &tracer.bytes).unwrap();
        directory
    };
    add("a", "1-1");
    let second = add("a", "2-2");
    for (number, from) in ["", "sessions", "sessions/a", "sessions/a/rings"].into_iter().enumerate() {
        let out = place.path().join(format!("out{number}"));
        let recovered = recover(&place.path().join(from), &out).unwrap();
        assert_eq!(recovered.processes.len(), 2);
        for process in ["1-1", "2-2"] {
            assert!(verify(&out.join(process)).unwrap().passed());
        }
    }
    // An unreadable process does not affect the other.
    fs::write(second.join("metadata"), "trace {").unwrap();
    let out = place.path().join("half");
    let recovered = recover(place.path(), &out).unwrap();
    assert_eq!((recovered.processes.len(), recovered.failed.len(), recovered.is_complete()), (1, 1, false));
    assert!(recovered.failed[0].reason.contains("metadata: line 1"), "{}", recovered.failed[0].reason);
    assert!(verify(&out.join("1-1")).unwrap().passed());
    // The same process in two sessions.
    add("b", "1-1");
    let out = place.path().join("both");
    recover(place.path(), &out).unwrap();
    assert!(verify(&out.join("a/1-1")).unwrap().passed() && verify(&out.join("b/1-1")).unwrap().passed());
}

/// The account of a running process is marked as a snapshot.
#[test]
fn a_running_process_is_read_but_not_changed() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let start: u64 = own.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().replace('-', "");
    let boot: Vec<u8> = (0..16).map(|n| u8::from_str_radix(&boot[2 * n..2 * n + 2], 16).unwrap()).collect();
    tracer.put(1024, &std::process::id().to_le_bytes());
    tracer.put_number(1032, start);
    tracer.put(1040, &boot);
    tracer.put_number(1056, std::os::unix::fs::MetadataExt::ino(&fs::metadata("/proc/self/ns/pid").unwrap()));
    let remains = Remains::of(&tracer);
    let text = crate::ring_file::metadata().replace("4242", &std::process::id().to_string());
    fs::write(remains.process.join("metadata"), text).unwrap();
    let process = taken(&remains, &[0]);
    assert!(process.notes[0].contains("is running"), "{process:#?}");
    assert!(process.snapshot && !process.complete, "{process:#?}");
    let report = verify(&remains.out()).unwrap();
    assert!(report.passed() && report.snapshots() == 1, "{report:#?}");
}

#[test]
fn a_directory_of_rings_is_not_a_ctf_trace() {
    let tracer = Tracer::new(Shape::default());
    let remains = Remains::of(&tracer);
    for path in [remains.session(), remains.process.clone()] {
        let error = tracepoint_reader::Trace::open(&path).unwrap_err().to_string();
        assert!(error.contains("`tracectl recover "), "{error}");
    }
}

/// A reader that comes too early finds no account.
#[test]
fn the_account_is_written_last() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of(&tracer);
    let account = remains.out().join(".account");
    let mut calls = 0;
    let seen = |path: &Path| path.exists();
    recover_with(&remains.process, &remains.out(), |progress| {
        calls += 1;
        assert!(progress.done <= progress.total && progress.process == 0 && progress.processes == 1);
        assert!(progress.done == progress.total || !seen(&account));
    })
    .unwrap();
    assert!(calls > 2 && seen(&account.join("account.json")));
    assert_eq!(fs::read_dir(account).unwrap().count(), 1, "nothing is left over");
}
