//! A snapshot at the first panic of a process. `scripts/abort.sh` tests panics that end the process.

use crate::common::{Outcome, memory_place, names, place};
use crate::flight::{checked, numbers};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "panicking";
    pub step(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
    pub other(n: u64) { n: u64 = n }
}

fn flight(name: &str, bytes: usize) -> SessionBuilder {
    Session::builder(name).events("panicking:step").channel(Channel::overwrite(bytes))
}

/// The snapshots of two sessions at the first panic; the directory of one session is not empty.
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
    // A panic in a probe is caught, and does not count as the first.
    let probe = register_trace_other(|_| panic!("in a probe"))?;
    tracepoint::trace!(other(1));
    drop(probe);
    assert!(!free.exists());
    assert!(panic(1)?);
    assert!(checked(&free)?[&1] == [0]);
    let beside = || names(place.path()).into_iter().filter(|name| name.starts_with("taken-")).collect::<Vec<_>>();
    let [name] = &beside()[..] else { return Err(format!("{:?}", beside()).into()) };
    assert!(name.starts_with(&format!("taken-{}-2", std::process::id())) && name.ends_with('Z'), "{name}");
    assert!(checked(&place.path().join(name))?[&1] == [0]);
    // Each session takes one snapshot.
    assert!(panic(2)? && catch_unwind(AssertUnwindSafe(|| panic!("caught"))).is_err());
    assert_eq!(beside().len(), 1);
    assert!(!numbers(&free)?.contains_key(&2));
    files.stop()?;
    memory.stop()?;
    Ok(())
}

/// If several threads panic at once, each ends after the snapshot is complete, even if one holds the lock of standard error.
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
