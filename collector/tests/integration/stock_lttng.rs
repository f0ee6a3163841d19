//! Stock senders and viewers: programs traced by LTTng-UST, `lttng-sessiond` and its consumer daemon, `babeltrace2`.

use super::lttng::Lttng;
use super::running::Running;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sets up LTTng, and a collector with its output in the same place.
fn start() -> Option<(Lttng, PathBuf, Running)> {
    let place = Lttng::new(&[])?;
    let output = place.path().join("out");
    let collector = Running::below(&output);
    Some((place, output, collector))
}

/// Ends a collector that has stored everything.
fn end_with_all(collector: Running) {
    let (counts, messages) = collector.end();
    assert_eq!((counts.late, counts.missing, counts.unwritten), (0, 0, 0), "{messages:?}");
}

/// Runs a script; `$URLS` contains the options of `lttng create`, `$LIVE` the address for viewers.
fn run(place: &Lttng, collector: &Running, script: &str) {
    let addresses = collector.addresses;
    let urls = format!("--ctrl-url=tcp://{} --data-url=tcp://{}", addresses.control, addresses.data);
    place.run(&[("URLS", urls), ("LIVE", format!("net://{}", addresses.live))], script);
}

/// Extracts the numbers from babeltrace2's text.
fn numbers(text: &str) -> Vec<u64> {
    let number = |line: &str| line.rsplit_once("\"n=")?.1.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    text.lines().map(|line| number(line).unwrap_or_else(|| panic!("no event: {line}"))).collect()
}

/// Reads a directory with babeltrace2, which must not warn.
fn stored(directory: &Path) -> Vec<u64> {
    let output = Command::new("babeltrace2").arg(directory).output().expect("babeltrace2 runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", directory.display());
    assert!(output.status.success());
    numbers(&String::from_utf8_lossy(&output.stdout))
}

/// Asserts that each number occurs once, in any order: the programs run on several processors.
fn assert_each_once(numbers: &[u64], expected: impl Iterator<Item = u64>) {
    let (found, expected): (BTreeSet<u64>, BTreeSet<u64>) = (numbers.iter().copied().collect(), expected.collect());
    let missing: Vec<_> = expected.difference(&found).take(10).collect();
    assert_eq!(found, expected, "missing: {missing:?}");
    assert_eq!(numbers.len(), expected.len(), "events came twice");
}

#[test]
fn what_lttng_sends_is_stored() {
    let Some((place, output, collector)) = start() else { return };
    run(
        &place,
        &collector,
        "lttng create shop $URLS
         lttng enable-channel -u c --subbuf-size=65536 --num-subbuf=64
         lttng enable-event -u -c c 'lttng_ust_tracef:*'
         lttng start
         ./app 0 20000 0 & ./app 20000 40000 0 &
         wait
         lttng stop
         lttng destroy",
    );
    assert_each_once(&stored(&output), 0..40_000);
    let (counts, _) = collector.end();
    assert_eq!((counts.late, counts.missing, counts.unwritten, counts.failed), (0, 0, 0, 0));
    assert_eq!(counts.stored, counts.packets);
}

#[test]
fn per_process_buffers_and_limited_files_are_stored() {
    let Some((place, output, collector)) = start() else { return };
    run(
        &place,
        &collector,
        "lttng create shop $URLS
         lttng enable-channel -u c --buffers-pid --subbuf-size=4096 --num-subbuf=64 --tracefile-size=16384
         lttng enable-event -u -c c 'lttng_ust_tracef:*'
         lttng start
         ./app 0 3000 20 & ./app 3000 6000 20 &
         wait
         lttng stop
         lttng destroy",
    );
    assert_each_once(&stored(&output), 0..6000);
    let files = walk(&output).into_iter().filter(|path| path.ends_with("c_0_1") || path.ends_with("c_1_1")).count();
    assert!(files >= 1, "{:#?}", walk(&output));
}

/// Lists all files below a directory.
fn walk(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry")) {
        if entry.file_type().expect("a type").is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn several_viewers_see_events_live() {
    let Some((place, output, collector)) = start() else { return };
    // Killing a viewer disturbs neither senders nor other viewers. The first events arrive before the viewers.
    run(
        &place,
        &collector,
        "lttng create live --live=100000 $URLS
         lttng enable-event -u 'lttng_ust_tracef:*'
         lttng start
         ./app 0 10 0
         sleep 0.5
         babeltrace2 -i lttng-live $LIVE >list
         for viewer in 1 2 3; do
             babeltrace2 -i lttng-live $LIVE/host/$HOST/live >viewer$viewer 2>errors$viewer & eval v$viewer=$!
         done
         sleep 1
         ./app 10 1010 100
         await has_lines viewer1 1000
         await has_lines viewer2 1000
         kill -9 $v3
         ./app 1010 2010 0
         await has_lines viewer1 2000
         await has_lines viewer2 2000
         cp viewer1 live1
         lttng stop
         lttng destroy
         wait $v1
         wait $v2",
    );
    assert!(place.file("list").contains("/live (timer = 100000, "), "{}", place.file("list"));
    for viewer in ["viewer1", "viewer2", "live1"] {
        assert_each_once(&numbers(&place.file(viewer)), 10..2010);
    }
    for errors in ["errors1", "errors2"] {
        assert_eq!(place.file(errors), "");
    }
    assert_each_once(&stored(&output), 0..2010);
    end_with_all(collector);
}

/// babeltrace2 looks for new streams only when it gets a packet of a known one, which does not happen here.
#[test]
fn processes_that_come_while_the_known_ones_are_idle_are_seen_live() {
    let Some((place, _, collector)) = start() else { return };
    run(
        &place,
        &collector,
        "lttng create pids --live=100000 $URLS
         lttng enable-channel -u c --buffers-pid
         lttng enable-event -u -c c 'lttng_ust_tracef:*'
         lttng start
         ./app 0 1 60000000 & idle=$!
         is_listed() { babeltrace2 -i lttng-live $LIVE | grep -q ' [1-9][0-9]* stream'; }
         await is_listed
         babeltrace2 -i lttng-live $LIVE/host/$HOST/pids >viewer 2>errors & viewer=$!
         is_viewed() { babeltrace2 -i lttng-live $LIVE | grep -q ' 1 client'; }
         await is_viewed
         for from in 100 200; do
             ./app $from $((from + 100)) 0
             await has_lines viewer $from
         done
         kill $idle
         lttng stop
         lttng destroy
         wait $viewer",
    );
    let seen = numbers(&place.file("viewer"));
    // The first number may arrive before the viewer has attached.
    assert_each_once(seen.strip_prefix(&[0]).unwrap_or(&seen), 100..300);
    assert_eq!(place.file("errors"), "");
    end_with_all(collector);
}

/// Data recorded before a clear is gone, whether the session records or is stopped.
#[test]
fn cleared_sessions_go_on() {
    let Some((place, output, collector)) = start() else { return };
    run(
        &place,
        &collector,
        "lttng create cleared $URLS
         lttng enable-event -u 'lttng_ust_tracef:*'
         lttng start
         ./app 0 100 0
         lttng clear cleared
         ./app 100 200 0
         lttng stop
         lttng clear cleared
         lttng start
         ./app 200 300 0
         lttng stop
         lttng destroy",
    );
    end_with_all(collector);
    assert_each_once(&stored(&output), 200..300);
    let packets = |path: &PathBuf| path.file_name().is_some_and(|name| name == "channel0_0");
    assert_eq!(walk(&output).iter().filter(|path| packets(path)).count(), 1, "{:#?}", walk(&output));
}

#[test]
fn snapshots_of_a_session_are_in_one_directory() {
    let Some((place, output, collector)) = start() else { return };
    run(
        &place,
        &collector,
        "lttng create kept --snapshot $URLS
         lttng enable-event -u 'lttng_ust_tracef:*'
         lttng start
         for n in 1 2 3; do ./app ${n}00 ${n}01 0; lttng snapshot record; done
         lttng destroy",
    );
    collector.end();
    let directories =
        |path: &Path| std::fs::read_dir(path).expect("a directory").map(|it| it.expect("an entry").path());
    let hosts: Vec<_> = directories(&output).collect();
    let sessions: Vec<_> = hosts.iter().flat_map(|host| directories(host)).collect();
    let [session] = &sessions[..] else { panic!("one directory, not {sessions:?}") };
    let snapshots = directories(session).filter(|path| path.is_dir()).map(|path| stored(&path).len());
    let mut sizes: Vec<_> = snapshots.collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, 3]);
}

#[test]
fn rotated_chunks_are_complete_traces() {
    let Some((place, output, collector)) = start() else { return };
    run(
        &place,
        &collector,
        "lttng create rotated $URLS
         lttng enable-channel -u c --subbuf-size=4096 --num-subbuf=64
         lttng enable-event -u -c c 'lttng_ust_tracef:*'
         lttng start
         ./app 0 15000 100 & app=$!
         for _ in 1 2 3; do sleep 0.4; lttng rotate rotated; done
         wait $app
         lttng stop
         lttng destroy",
    );
    // The mark of a session being received is removed when its last connection closes; `lttng destroy` does not wait for that.
    end_with_all(collector);
    let chunks = walk(&output).into_iter().filter(|path| path.ends_with("metadata"));
    let chunks: Vec<Vec<u64>> = chunks.map(|path| stored(path.parent().expect("a directory"))).collect();
    assert_eq!(chunks.len(), 4);
    assert_each_once(&chunks.concat(), 0..15_000);
    let archived = walk(&output).iter().all(|path| path.to_string_lossy().contains("/archives/"));
    assert!(archived, "{:#?}", walk(&output));
}
