//! A flight recorder that the program itself reads: snapshots while it records, in files and in memory, and at a panic.

use crate::common::{Outcome, assert_balances, memory_place, names, part, place, view};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tracepoint_control::sinks::{CtfSink, TextSink};
use tracepoint_control::{Channel, RecoverError, Session, SessionBuilder, SessionError};
use tracepoint_reader::{Item, Trace, Value, verify};

tracepoint::define_trace! {
    provider = "recorder";
    pub step(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
    pub other(n: u64) { n: u64 = n }
}

fn flight(name: &str, bytes: usize) -> SessionBuilder {
    Session::builder(name).events("recorder:step").channel(Channel::overwrite(bytes))
}

/// The numbers of the events of each thread in a trace, which are in order.
fn numbers(trace: &Path) -> Result<BTreeMap<u64, Vec<u64>>, Box<dyn std::error::Error>> {
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for item in Trace::open(trace)?.items() {
        match item {
            Item::Event(event) => {
                let field = |name: &str| event.fields.as_ref()?.get(name).and_then(Value::as_u64);
                let (thread, n) = (field("thread").unwrap_or(0), field("n").ok_or("no number")?);
                numbers.entry(thread).or_default().push(n);
            }
            Item::Loss(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(numbers)
}

/// Verifies a snapshot of a session that goes on; its events by thread.
fn checked(trace: &Path) -> Result<BTreeMap<u64, Vec<u64>>, Box<dyn std::error::Error>> {
    assert_balances(trace);
    assert_eq!(verify(trace)?.snapshots(), 1, "it says that it is a snapshot");
    numbers(trace)
}

/// The snapshot ends with the last event before it, and the session goes on: in files and in memory, without a sink.
#[test]
fn a_snapshot_ends_with_the_last_event() -> Outcome {
    own_process!();
    let (rings, place) = (memory_place(), place());
    for in_memory in [false, true] {
        let builder = flight("last", 16 << 10);
        let builder = if in_memory { builder.in_memory() } else { builder.dir(rings.path()) };
        let session = builder.start()?;
        let mut fired = 0;
        for (index, more) in [0, 1, 3, 5000, 1].into_iter().enumerate() {
            for _ in 0..more {
                tracepoint::trace!(step(1, fired));
                fired += 1;
            }
            let out = place.path().join(format!("{in_memory}-{index}"));
            let summary = session.snapshot(&out)?;
            assert_eq!((summary.path.as_path(), summary.failed.len()), (&*out, 0));
            let kept = checked(&out)?.remove(&1).unwrap_or_default();
            assert_eq!(kept.len() as u64, summary.events);
            assert!(kept.iter().copied().eq(fired - kept.len() as u64..fired), "{in_memory} {index}: {kept:?}");
            let overwritten = summary.lost.get("overwritten").copied().unwrap_or(0);
            assert_eq!(overwritten + summary.events, fired);
            assert_eq!(view(&[&out]).lines.len() as u64, summary.events);
        }
        assert_eq!(names(place.path()).iter().filter(|name| name.starts_with('.')).count(), 0);
        let summary = session.stop()?;
        assert_eq!(summary.events()[0].recorded, fired, "it went on");
    }
    Ok(())
}

/// Each snapshot balances, and has a contiguous part of the events of each thread, up to its last one or nearly so.
#[test]
fn snapshots_beside_threads_at_full_rate() -> Outcome {
    const THREADS: u64 = 4;
    own_process!();
    let (rings, place) = (memory_place(), place());
    let snapshots: u64 = std::env::var("TRACEPOINT_SNAPSHOTS").map_or(Ok(6), |snapshots| snapshots.parse())?;
    for in_memory in [true, false] {
        let builder = flight("full", 64 << 10);
        let builder = if in_memory { builder.in_memory() } else { builder.dir(rings.path()) };
        let session = builder.start()?;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| -> Outcome {
            for id in 0..THREADS {
                let stop = &stop;
                scope.spawn(move || {
                    for n in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                        tracepoint::trace!(step(id, n));
                    }
                });
            }
            let both = || -> Result<(), String> {
                for index in 0..snapshots {
                    let out = place.path().join(format!("{in_memory}-{index}-{:?}", thread::current().id()));
                    let summary = session.snapshot(&out).map_err(|error| error.to_string())?;
                    let kept = checked(&out).map_err(|error| format!("{index}: {error} {summary:?}"))?;
                    for (id, numbers) in &kept {
                        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "thread {id}: no gap");
                    }
                    assert_eq!(kept.values().map(|numbers| numbers.len() as u64).sum::<u64>(), summary.events);
                    if index % 4 == 0 {
                        assert_eq!(view(&[&out]).lines.len() as u64, summary.events);
                    }
                    std::fs::remove_dir_all(&out).map_err(|error| error.to_string())?;
                }
                Ok(())
            };
            // Beside itself as well.
            let other = scope.spawn(both);
            let (mine, theirs) = (both(), other.join());
            stop.store(true, Ordering::Relaxed);
            mine?;
            Ok(theirs.map_err(|_| "a panic")??)
        })?;
        session.stop()?;
    }
    Ok(())
}

/// A trace of a session with a sink has what the sink has kept, and what is in the rings; also across rotations.
#[test]
fn a_snapshot_has_the_packets_of_sinks_and_rings() -> Outcome {
    own_process!();
    let place = place();
    let sink = CtfSink::create(place.path().join("trace"))?;
    let builder = Session::builder("mixed").events("recorder:*").channel(Channel::discard(1 << 20)).in_memory();
    let session = builder.sink(sink).start()?;
    let mut n = 0;
    for index in 0..4 {
        for _ in 0..3000 {
            tracepoint::trace!(step(1, n));
            n += 1;
        }
        if index % 2 == 1 {
            session.rotate()?;
        } else {
            session.flush()?;
        }
        tracepoint::trace!(step(1, n));
        n += 1;
        let out = place.path().join(index.to_string());
        let summary = session.snapshot(&out)?;
        assert_eq!((summary.events, summary.lost.len()), (n, 0), "{summary:?}");
        assert!(checked(&out)?[&1].iter().copied().eq(0..n));
    }
    assert_eq!(names(&place.path().join("trace")).len(), 3, "two closed chunks and an open one");
    session.stop()?;
    Ok(())
}

/// After `flush` a CTF directory has everything, though no packet was full or old.
#[test]
fn flush_moves_open_packets_to_the_sinks() -> Outcome {
    own_process!();
    let place = place();
    let trace = place.path().join("trace");
    let builder = Session::builder("flush").events("recorder:step").in_memory().sink(CtfSink::create(&trace)?);
    let session = builder.start()?;
    for n in 0..10 {
        tracepoint::trace!(step(0, n));
        session.flush()?;
        assert_eq!(numbers(&trace)?[&0].len() as u64, n + 1);
    }
    session.stop()?;
    assert_balances(&trace);
    Ok(())
}

#[test]
fn what_cannot_be_is_a_typed_error() -> Outcome {
    own_process!();
    let place = place();
    let error =
        Session::builder("none").events("recorder:step").channel(Channel::discard(64 << 10)).in_memory().start();
    let error = error.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("give the session a sink") && error.contains("overwrite"), "{error}");

    let session = flight("errors", 16 << 10).in_memory().start()?;
    let out = place.path().join("out");
    std::fs::create_dir(&out)?;
    session.snapshot(&out)?;
    let error = session.snapshot(&out).err();
    assert!(
        matches!(&error, Some(SessionError::Snapshot { source: RecoverError::NotEmpty { path, .. }, .. }) if *path == out),
        "{error:?}"
    );
    std::fs::write(place.path().join("file"), b"")?;
    let error = session.snapshot(place.path().join("file")).err();
    assert!(matches!(error, Some(SessionError::Snapshot { source: RecoverError::Write { .. }, .. })), "{error:?}");

    // Inside a probe.
    let found = thread::scope(|scope| -> Result<_, Box<dyn std::error::Error>> {
        let (send, receive) = std::sync::mpsc::channel();
        let (session, path) = (std::sync::Arc::new(session), place.path().join("probe"));
        let (inside, to) = (std::sync::Arc::clone(&session), path.clone());
        let probe = register_trace_other(move |_| {
            let errors = [inside.snapshot(&to).err(), inside.flush().err(), inside.rotate().err()];
            let all = errors.iter().all(|error| matches!(error, Some(SessionError::InsideProbe { .. })));
            send.send(all).expect("it is received");
        })?;
        scope.spawn(|| tracepoint::trace!(other(1)));
        let found = receive.recv()?;
        unregister_trace_other(probe);
        assert!(found && !path.exists());
        Ok(std::sync::Arc::into_inner(session))
    })?;
    let session = found.ok_or("the probe has released it")?;

    // In a forked child.
    let path = place.path().join("child");
    // SAFETY: the child calls only code that takes no lock of another thread, and exits.
    let child = match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Child => {
            let is_right = matches!(session.snapshot(&path), Err(SessionError::Forked { .. }));
            // SAFETY: ends the child without destructors.
            unsafe { nix::libc::_exit(if is_right { 0 } else { 1 }) }
        }
        nix::unistd::ForkResult::Parent { child } => child,
    };
    let status = nix::sys::wait::waitpid(child, None)?;
    assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
    session.stop()?;
    Ok(())
}

/// `stop` waits for a snapshot that is being written; one that comes later finds the session stopped.
#[test]
fn a_snapshot_of_a_stopped_session_is_an_error() -> Outcome {
    own_process!();
    let place = place();
    let rings = memory_place();
    for round in 0..20 {
        let session = flight("stopped", 64 << 10).dir(rings.path()).start()?;
        (0..3000).for_each(|n| tracepoint::trace!(step(0, n)));
        let agent = tracepoint_control::Agent::start_in(&tracepoint_control::RunDir::at(&place.path().join("run"))?)?;
        assert!(matches!(agent.snapshot("stopped", place.path()), Err(SessionError::NotRecorded { .. })));
        drop(agent);
        let out = place.path().join(round.to_string());
        // Another thread may hold the session; here a snapshot runs while the session is dropped.
        let session = std::sync::Arc::new(session);
        let other = std::sync::Arc::clone(&session);
        let (to, begun) = (out.clone(), std::sync::Arc::new(std::sync::Barrier::new(2)));
        let go = std::sync::Arc::clone(&begun);
        let taken = thread::spawn(move || {
            go.wait();
            let taken = other.snapshot(&to);
            drop(other);
            taken
        });
        begun.wait();
        drop(session);
        match taken.join().map_err(|_| "a panic")? {
            Ok(summary) => assert_eq!(checked(&out)?.values().map(Vec::len).sum::<usize>() as u64, summary.events),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The snapshots of the first panic, of two sessions, one of which has a directory that is taken.
#[test]
fn the_first_panic_takes_snapshots() -> Outcome {
    own_process!();
    let (rings, place) = (memory_place(), place());
    let (free, taken) = (place.path().join("free"), place.path().join("taken"));
    std::fs::create_dir(&taken)?;
    std::fs::write(taken.join("note"), b"")?;
    let files = flight("files", 64 << 10).dir(rings.path()).on_panic(&free).start()?;
    let memory = flight("memory", 64 << 10).in_memory().on_panic(&taken).start()?;
    let panic = |n: u64| {
        let thread = thread::Builder::new().stack_size(32 << 10).spawn(move || {
            tracepoint::trace!(step(n, 0));
            panic!("the panic of the test");
        });
        thread.map(|thread| thread.join().is_err())
    };
    // A panic in a probe is caught, and is not the one.
    let probe = register_trace_other(|_| panic!("in a probe"))?;
    tracepoint::trace!(other(1));
    drop(probe);
    assert!(!free.exists());
    assert!(panic(1)?);
    assert!(checked(&free)?[&1] == [0]);
    let beside = |_: ()| names(place.path()).into_iter().filter(|name| name.starts_with("taken-")).collect::<Vec<_>>();
    let [name] = &beside(())[..] else { return Err(format!("{:?}", beside(())).into()) };
    assert!(name.starts_with(&format!("taken-{}-2", std::process::id())) && name.ends_with('Z'), "{name}");
    assert!(checked(&place.path().join(name))?[&1] == [0]);
    // Each session takes one.
    assert!(panic(2)? && catch_unwind(AssertUnwindSafe(|| panic!("caught"))).is_err());
    assert_eq!(beside(()).len(), 1);
    assert!(!numbers(&free)?.contains_key(&2));
    files.stop()?;
    memory.stop()?;
    Ok(())
}

/// Of threads that panic at once, each ends when the snapshot is there, though one holds the lock of standard error.
#[test]
fn panics_at_once_wait_for_the_snapshot() -> Outcome {
    own_process!();
    let place = place();
    let out = place.path().join("out");
    let session = flight("many", 1 << 20).in_memory().on_panic(&out).start()?;
    thread::scope(|scope| {
        for id in 0..8 {
            let out = &out;
            scope.spawn(move || {
                let _lock = (id == 0).then(|| std::io::stderr().lock());
                (0..1000).for_each(|n| tracepoint::trace!(step(id, n)));
                let panicked = catch_unwind(|| panic!("one of many"));
                assert!(panicked.is_err() && out.join("metadata").exists(), "the snapshot is there");
            });
        }
    });
    checked(&out)?;
    session.stop()?;
    Ok(())
}

/// A full disk leaves nothing, and is reported; the session goes on.
#[test]
fn a_full_disk_leaves_nothing() -> Outcome {
    own_process!();
    if let Some(dir) = part().strip_prefix("full ") {
        let session = flight("full", 1 << 20).in_memory().start()?;
        (0..20_000).for_each(|n| tracepoint::trace!(step(1, n)));
        let out = Path::new(dir).join("out");
        let error = session.snapshot(&out).err();
        let is_full = |error: &RecoverError| matches!(error, RecoverError::Write { source, .. } if source.kind() == std::io::ErrorKind::StorageFull);
        assert!(matches!(&error, Some(SessionError::Snapshot { source, .. }) if is_full(source)), "{error:?}");
        assert!(names(Path::new(dir)).is_empty(), "{:?}", names(Path::new(dir)));
        tracepoint::trace!(step(1, 20_000));
        assert_eq!(session.stop()?.events()[0].recorded, 20_001);
        return Ok(());
    }
    let place = place();
    let part = format!("full {}", place.path().display());
    let test = "a_full_disk_leaves_nothing";
    if let Some(mut command) = crate::common::again_mounted(test, &part, place.path(), "64k") {
        let output = command.output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// A text sink keeps no trace: what has gone there is counted as lost in a snapshot, which balances.
#[test]
fn events_that_went_to_a_text_sink_are_counted() -> Outcome {
    own_process!();
    let place = place();
    let builder = Session::builder("text").events("recorder:step").channel(Channel::discard(64 << 10)).in_memory();
    let session = builder.sink(TextSink::new(std::io::sink())).start()?;
    for n in 0..10_000 {
        tracepoint::trace!(step(0, n));
        if n % 100 == 0 {
            session.flush()?;
        }
    }
    let out = place.path().join("out");
    let summary = session.snapshot(&out)?;
    // The newest are still in the ring.
    let gone = summary.lost.get("sink").copied().unwrap_or(0);
    assert!(gone > 0 && checked(&out)?[&0].iter().copied().eq(gone..10_000), "{summary:?}");
    session.stop()?;
    Ok(())
}
