//! File systems that become full, and have free space again, while a session runs: the program continues, losses are counted by reason, and
//! recording continues as soon as possible.

use crate::common::{
    Outcome, again_mounted, assert_balances, event, fill_up, lost, memory_place, overwritten, part, place,
    process_dirs, ring_files, sum_of_streams, view,
};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::{CtfSink, DtSink, TextSink};
use tracepoint_session::{Channel, Session, SessionBuilder, SessionError};

tracepoint::define_trace! {
    provider = "full";
    pub seen(n: u64) { n: u64 = n }
}

/// This process's part: returns the mount point of the file system.
fn mounted() -> Option<PathBuf> {
    part().strip_prefix("at ").map(PathBuf::from)
}

/// Runs the test again with a small file system at its own mount point.
fn with_mounted(test: &str, size: &str) {
    let place = memory_place();
    let part = format!("at {}", place.path().display());
    let test = again_mounted(test, &part, place.path(), size);
    assert!(test.is_none_or(|mut test| test.status().is_ok_and(|status| status.success())));
}

fn session() -> SessionBuilder {
    Session::builder("full").events("full:*").channel(Channel::discard(64 << 10).spares(1))
}

fn rings(dir: &Path) -> usize {
    process_dirs(dir).iter().map(|dir| ring_files(dir).len()).sum()
}

const THREADS: u64 = 6;

#[test]
fn threads_get_rings_once_there_is_room() -> Outcome {
    own_process!();
    let Some(small) = mounted() else {
        with_mounted("threads_get_rings_once_there_is_room", "2m");
        return Ok(());
    };
    let place = place();
    let (dir, trace) = (small.join("session"), place.path().join("trace"));
    let session = session().dir(&dir).sink(CtfSink::create(&trace)?).start()?;
    let ballast = fill_up(&small)?;
    let before = rings(&dir);
    let there_is_room = AtomicBool::new(false);
    let (fired, roomy) = (Barrier::new(THREADS as usize + 1), &there_is_room);
    thread::scope(|scope| -> Outcome {
        for n in 0..THREADS {
            let fired = &fired;
            scope.spawn(move || {
                tracepoint::trace!(seen(n));
                fired.wait();
                // All threads stay until the last one has a ring.
                while !roomy.load(Ordering::Relaxed) {
                    tracepoint::trace!(seen(n));
                    thread::sleep(Duration::from_millis(5));
                }
                tracepoint::trace!(seen(1000 + n));
            });
        }
        fired.wait();
        // Several attempts of the drain to create another ring, and at least one that was not refused because of the previous one.
        thread::sleep(Duration::from_millis(1200));
        let full = session.status();
        assert!(full.events()[0].lost["no_ring"] >= THREADS - 1, "{full:?}");
        assert_eq!(rings(&dir), before, "nothing is left of the rings that were refused");
        std::fs::remove_file(&ballast)?;
        // Without a time limit.
        while rings(&dir) < before + THREADS as usize {
            thread::sleep(Duration::from_millis(20));
        }
        roomy.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    let summary = session.stop()?;
    let event = event(&summary, "full:seen");
    assert_eq!(event.fired, event.recorded + lost(event));
    assert_eq!(lost(event), event.lost["no_ring"], "{event:?}");
    let viewed = view(&[&trace]);
    assert_eq!((viewed.lines.len() as u64, viewed.discarded_events()), (event.recorded, lost(event)));
    for n in 1000..1000 + THREADS {
        assert_eq!(viewed.count(&format!("{{ n = {n} }}")), 1, "recorded once there is room");
    }
    assert_balances(&trace);
    Ok(())
}

#[test]
fn a_trace_on_a_full_disk_continues_once_there_is_room() -> Outcome {
    own_process!();
    let Some(small) = mounted() else {
        with_mounted("a_trace_on_a_full_disk_continues_once_there_is_room", "1m");
        return Ok(());
    };
    let trace = small.join("trace");
    let session = session().in_memory().sink(CtfSink::create(&trace)?).start()?;
    tracepoint::trace!(seen(0));
    let ballast = fill_up(&small)?;
    let mut n = 1;
    let mut fire_until = |enough: &dyn Fn(&tracepoint_session::Status) -> bool| {
        while !enough(&session.status()) {
            (n..n + 1000).for_each(|n| tracepoint::trace!(seen(n)));
            n += 1000;
            thread::sleep(Duration::from_millis(5));
        }
    };
    fire_until(&|status| status.sinks[0].refused >= 20);
    let before = session.status().bytes();
    std::fs::remove_file(ballast)?;
    fire_until(&|status| status.bytes() > before + (64 << 10));
    let n = 1_000_000_000;
    tracepoint::trace!(seen(n));
    let error = session.stop().err().ok_or("nothing is said")?;
    assert!(error.to_string().contains("make room"), "{error}");
    let SessionError::Sinks { failures, summary } = error else { return Err(error.into()) };
    assert!(failures[0].refused >= 20, "{failures:?}");
    let account = summary.account().ok_or("no account")?;
    let written = sum_of_streams(account, |stream| stream.written);
    assert!(
        sum_of_streams(account, |stream| stream.sink) > 0 && written > 0 && overwritten(account) == 0,
        "{account:?}"
    );
    let event = event(&summary, "full:seen");
    assert_eq!(event.fired, event.recorded + lost(event));
    let viewed = view(&[&trace]);
    assert_eq!(viewed.lines.len() as u64, written);
    assert!(viewed.discarded_packets() >= 20, "{}", viewed.warnings);
    assert_eq!(viewed.count(&format!("{{ n = {n} }}")), 1, "what came when there was room again");
    assert_balances(&trace);
    Ok(())
}

/// The final counters need space that no other file has taken meanwhile.
#[test]
fn a_trace_on_a_disk_that_stays_full_has_its_counters() -> Outcome {
    own_process!();
    let Some(small) = mounted() else {
        with_mounted("a_trace_on_a_disk_that_stays_full_has_its_counters", "1m");
        return Ok(());
    };
    let trace = small.join("trace");
    let session = session().in_memory().sink(CtfSink::create(&trace)?).start()?;
    let mut n = 0;
    while session.status().sinks[0].refused < 20 {
        (n..n + 1000).for_each(|n| tracepoint::trace!(seen(n)));
        n += 1000;
        thread::sleep(Duration::from_millis(5));
    }
    fill_up(&small)?;
    let error = session.stop().err().ok_or("nothing is said")?;
    let SessionError::Sinks { failures, summary } = error else { return Err(error.into()) };
    assert!(!failures[0].error.to_string().contains(".account"), "{failures:?}");
    let written = sum_of_streams(summary.account().ok_or("no account")?, |stream| stream.written);
    let viewed = view(&[&trace]);
    assert_eq!((viewed.lines.len() as u64, viewed.discarded_packets()), (written, failures[0].refused));
    assert_balances(&trace);
    Ok(())
}

#[test]
fn unwritable_outputs_are_refused_at_the_start() -> Outcome {
    own_process!();
    let Some(small) = mounted() else {
        with_mounted("unwritable_outputs_are_refused_at_the_start", "1m");
        return Ok(());
    };
    std::fs::create_dir(small.join("trace"))?;
    let sealed = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(&small).status()?;
    assert!(sealed.success(), "mount can do so");
    let refused = |error: &dyn std::error::Error, path: &str| {
        let message = error.to_string();
        assert!(message.contains("Read-only file system") && message.contains(path), "{message}");
    };
    // The trace: a new directory cannot be created, and in an existing one no file can be created.
    refused(&CtfSink::create(small.join("new")).err().ok_or("it was made")?, "/new");
    let sink = CtfSink::create(small.join("trace"))?;
    refused(&session().in_memory().sink(sink).start().err().ok_or("it was started")?, "/trace/metadata");
    // The rings.
    let text = || TextSink::new(Vec::new());
    let error = session().dir(small.join("session")).sink(text()).start().err().ok_or("it was started")?;
    refused(&error, "/session");
    assert!(error.to_string().contains(".in_memory()"), "{error}");
    session().in_memory().sink(text()).start()?.stop()?;
    Ok(())
}

/// A circular file allocates all of its space at the start: it is refused then, or never runs out of space.
#[test]
fn an_existing_circular_file_needs_no_disk_space() -> Outcome {
    own_process!();
    let Some(small) = mounted() else {
        with_mounted("an_existing_circular_file_needs_no_disk_space", "1m");
        return Ok(());
    };
    let path = small.join("newest.dt");
    let session = || session().channel(Channel::discard(32 << 10).packets(8).overflow(0)).in_memory();
    let error = session().sink(DtSink::create(&path, 300)?).start().err().ok_or("1.2 MB were taken")?;
    assert!(error.to_string().contains("newest.dt") && error.to_string().contains("make room"), "{error}");
    assert_eq!(std::fs::read_dir(&small)?.count(), 0, "nothing is left");

    let session = session().sink(DtSink::create(&path, 100)?).start()?;
    fill_up(&small)?;
    for round in 0..50 {
        (0..2_000).for_each(|n| tracepoint::trace!(seen(round * 2_000 + n)));
        thread::sleep(Duration::from_millis(2));
    }
    let summary = session.stop()?;
    let account = summary.account().ok_or("no account")?;
    assert!(sum_of_streams(account, |stream| stream.written) > 0 && overwritten(account) > 0, "{account:?}");
    assert_eq!(sum_of_streams(account, |stream| stream.sink), 0, "{account:?}");
    assert_balances(&path);
    Ok(())
}
