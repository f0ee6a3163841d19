//! A writer killed at any moment leaves a complete trace in the store, or none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::{run, seed, text};
use tracepoint_query_tests::traces::{EventKind, Field, Random, TraceSpec};

/// Number of event files, and whether the account exists.
pub(crate) fn visible(store: &Path) -> (usize, bool) {
    fn count(directory: &Path) -> usize {
        let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
        entries
            .map(
                |path| {
                    if path.is_dir() { count(&path) } else { usize::from(path.extension() == Some("parquet".as_ref())) }
                },
            )
            .sum()
    }
    let days = fs::read_dir(store).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let days = days.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"day=")));
    (days.map(|day| count(&day)).sum(), count(&store.join("account")) > 0)
}

/// Returns whether the store has a transaction that is not finished.
fn has_transaction(store: &Path) -> bool {
    fs::read_dir(store.join(".tracepoint/transactions")).is_ok_and(|transactions| transactions.count() > 0)
}

/// A trace of 2020 with `kinds` kinds of events.
pub(crate) fn large_trace(place: &Path, random: &mut Random, kinds: u64) -> (PathBuf, u64) {
    let fields = || (0..6).map(|at| (format!("f{at}"), Field::random(&mut Random(at + 1), 1))).collect();
    let kinds: Vec<_> = (0..kinds).map(|at| EventKind { name: format!("killed:e{at}"), fields: fields() }).collect();
    let (uuid, host, session) = ([3; 16], "h".to_owned(), "s".to_owned());
    let (begin_ns, step_ns) = (1_600_000_000_000_000_000, 10_000_000_000);
    let made = TraceSpec {
        uuid,
        host,
        session,
        begin_ns,
        step_ns,
        kinds,
        streams: 4,
        packets: 20,
        packet_events: 400,
        loses: false,
        contexts: false,
    };
    let trace = place.join("trace");
    let events = made.write(&trace, random);
    (trace, events)
}

#[test]
fn a_killed_writer_leaves_all_or_nothing() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (trace, events) = large_trace(place.path(), &mut random, 40);
    let kills = std::env::var("TRACEPOINT_KILLS").map_or(12, |kills| kills.parse().expect("a number"));
    // Measure a complete run.
    let began = std::time::Instant::now();
    let whole = place.path().join("whole");
    assert!(run(&["export", text(&whole), text(&trace)]).status.success());
    let (parts, took) = (visible(&whole).0, began.elapsed().as_micros() as u64);
    let (mut before, mut amid) = (0, 0);
    for kill in 0..kills {
        let store = place.path().join(format!("store{kill}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl-query"));
        let command = command.args(["export", text(&store), text(&trace)]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut writer = command.spawn().expect("the program runs");
        // Kill half of them soon after their first write, in case the machine was slower during the measurement.
        let is_early = kill % 2 == 1;
        while is_early && !has_transaction(&store) && writer.try_wait().expect("it was started").is_none() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(random.below(if is_early { took / 4 } else { took })));
        writer.kill().expect("it was started");
        writer.wait().expect("it was started");
        amid += usize::from(has_transaction(&store));
        // The next program that opens the store completes a committed transaction, and removes the files of an uncommitted one.
        if store.join(".tracepoint/store.json").exists() {
            assert!(run(&["compact", "--target", "1B", text(&store)]).status.success());
            assert!(!has_transaction(&store), "the transaction is over");
        }
        match visible(&store) {
            (0, false) => {
                before += 1;
                let again = run(&["export", "--json", text(&store), text(&trace)]);
                let summary: Value = serde_json::from_slice(&again.stdout).expect("JSON");
                assert_eq!(summary["events"], events, "{}", String::from_utf8_lossy(&again.stderr));
            }
            found => assert_eq!(found, (parts, true), "the whole trace"),
        }
        fs::remove_dir_all(&store).expect("a directory");
    }
    println!("{amid} of {kills} were killed while they wrote, {before} before they had committed");
    assert!(amid > 0, "no writer was killed while it wrote");
}
