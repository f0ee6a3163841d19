//! Streams a session's packets to `lttng-relayd`; babeltrace2 reads the stored trace and the live stream.

use crate::common::relayd::Relayd;
use crate::common::{Outcome, Recording, alone, view};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::stream::{Destination, StreamOptions, StreamSink};

tracepoint::define_trace! {
    provider = "test";
    pub streamed(n: u64) { n: u64 = n }
    pub tick(n: u64) { n: u64 = n }
}

/// A long time for an operation that should take a short one.
const LONG: Duration = Duration::from_secs(60);

fn options(relayd: &Relayd) -> StreamOptions {
    let to = Destination { data_port: Some(relayd.data_port), ..Destination::new("127.0.0.1", relayd.control_port) };
    StreamOptions::to(to).process("program-42-4711").sync_interval(Duration::from_millis(50))
}

fn config() -> Channel {
    Channel::discard(1 << 20).packets(64).overflow(0)
}

/// Returns the directories of the host's sessions, in order.
fn sessions(relayd: &Relayd) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(relayd.host("host")).expect("the directory of the host");
    let mut sessions: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    sessions.sort();
    sessions
}

/// Returns the values of `n` in the lines of an event, in order.
fn values(text: &str, event: &str) -> Vec<u64> {
    let lines = text.lines().filter(|line| line.contains(event));
    lines.map(|line| line.rsplit_once("n = ").expect(line).1.trim_end_matches(" }").parse().expect(line)).collect()
}

fn drain(recording: &mut Recording) {
    recording.drain.flush(Duration::ZERO);
    recording.drain.drain();
}

/// Drains until this condition holds.
fn drain_until(recording: &mut Recording, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come true");
        drain(recording);
        thread::sleep(Duration::from_millis(5));
    }
}

fn sum(account: &Account, of: fn(&tracepoint_sinks::account::StreamAccount) -> u64) -> u64 {
    account.channels.iter().flat_map(|channel| &channel.streams).map(of).sum()
}

#[test]
fn a_relay_stores_the_packets() -> Outcome {
    let _alone = alone();
    let relayd = Relayd::start();
    let sink = StreamSink::new(options(&relayd).flush(LONG))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    assert_eq!(watch.stats().connections, 1, "the recording starts when the peer has acknowledged");
    for part in 0..10 {
        thread::scope(|scope| {
            for thread in 0..4 {
                let first = (part * 4 + thread) * 500;
                scope.spawn(move || (first..first + 500).for_each(|n| tracepoint::trace!(streamed(n))));
            }
        });
        drain(&mut recording);
    }
    let ended = Instant::now();
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    assert!(ended.elapsed() < LONG, "the relay has said that it has everything, and the sender goes on waiting");
    assert_eq!((sum(&report.account, |s| s.written), sum(&report.account, |s| s.sink)), (20_000, 0));
    let [session] = &sessions(&relayd)[..] else { panic!("one session") };
    assert!(session.to_string_lossy().contains("/test-program-42-4711-"), "{session:?}");
    let (text, warnings) = view(session);
    assert_eq!(warnings, "");
    let found: BTreeSet<_> = values(&text, "test:streamed").into_iter().collect();
    assert!(found.len() == 20_000 && values(&text, "test:streamed").len() == 20_000 && found.last() == Some(&19_999));
    Ok(())
}

/// Every event after the viewer has attached is printed once, in order of time. Idle threads do not stall it, and new ones appear.
#[test]
fn a_live_viewer_sees_every_event() -> Outcome {
    let _alone = alone();
    let relayd = Relayd::start();
    let sink = StreamSink::new(options(&relayd))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    // A thread that is idle from here on, with an open packet.
    let (wake, woken) = channel::<()>();
    let (begun, has_begun) = channel();
    let idle = thread::spawn(move || {
        tracepoint::trace!(tick(0));
        begun.send(()).expect("the test waits");
        let _ = woken.recv();
        tracepoint::trace!(streamed(1_000_000));
    });
    has_begun.recv()?;
    drain_until(&mut recording, || watch.stats().packets > 0);

    let url = format!("net://127.0.0.1:{}/host/host/test-program-42-4711", relayd.live_port);
    let mut viewer = Command::new("babeltrace2")
        .args(["--input-format=lttng-live", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (line, lines) = channel();
    let stdout = BufReader::new(viewer.stdout.take().expect("a pipe"));
    let reader = thread::spawn(move || {
        for text in stdout.lines().map_while(Result::ok) {
            let _ = line.send(text);
        }
    });
    let mut printed = Vec::new();
    let mut number = 0;
    drain_until(&mut recording, || {
        number += 1;
        tracepoint::trace!(tick(number));
        printed.extend(lines.try_iter());
        !printed.is_empty()
    });
    thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || (0..1000).for_each(|n| tracepoint::trace!(streamed(thread * 1000 + n))));
        }
    });
    // They are printed although the other threads are idle.
    drain_until(&mut recording, || {
        printed.extend(lines.try_iter());
        printed.iter().filter(|line| line.contains("streamed")).count() == 3000
    });
    drop(wake);
    idle.join().map_err(|_| "the idle thread failed")?;
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!(sum(&report.account, |s| s.sink), 0);
    let status = wait(&mut viewer);
    reader.join().map_err(|_| "the reader failed")?;
    printed.extend(lines.try_iter());
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut viewer.stderr.take().expect("a pipe"), &mut errors)?;
    assert!(status.success() && errors.is_empty(), "{status}: {errors}");
    let text = printed.join("\n");
    let mut found = values(&text, "test:streamed");
    found.sort_unstable();
    assert_eq!(found, (0..3000).chain([1_000_000]).collect::<Vec<_>>());
    let times: Vec<_> = printed.iter().map(|line| line.split(']').next().expect("a time").to_owned()).collect();
    assert!(times.is_sorted(), "the view never goes backwards");
    Ok(())
}

/// Waits for the end of a process, for a bounded time.
fn wait(child: &mut std::process::Child) -> std::process::ExitStatus {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        assert!(Instant::now() < deadline, "the viewer does not end");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_relay_that_is_not_there_is_an_error_unless_it_is_waited_for() -> Outcome {
    let _alone = alone();
    let mut relayd = Relayd::start();
    relayd.kill();
    let sink = StreamSink::new(options(&relayd))?;
    let error = Recording::start(config(), vec![Box::new(sink)]).err().ok_or("no relay")?.to_string();
    assert!(error.contains("127.0.0.1") && error.contains("refused"), "{error}");

    let sink = StreamSink::new(options(&relayd).wait())?;
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    (0..100).for_each(|n| tracepoint::trace!(streamed(n)));
    drain(&mut recording);
    relayd.restart();
    let report = recording.finish().remove(0);
    assert_eq!((report.error.map(|error| error.to_string()), sum(&report.account, |s| s.sink)), (None, 0));
    assert_eq!(stored(&sessions(&relayd)), (0..100).collect::<Vec<_>>());
    Ok(())
}

/// Returns the values stored in these sessions, sorted.
fn stored(sessions: &[PathBuf]) -> Vec<u64> {
    let texts = sessions.iter().map(|session: &PathBuf| view(Path::new(session)).0);
    let mut found: Vec<_> = texts.flat_map(|text| values(&text, "test:streamed")).collect();
    found.sort_unstable();
    found
}

/// Packets underway when the relay was killed are counted as lost; everything else is stored once.
#[test]
fn a_relay_that_was_killed_is_found_again() -> Outcome {
    let _alone = alone();
    let mut relayd = Relayd::start();
    let sink = StreamSink::new(options(&relayd))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    let mut number = 0;
    for connection in 1..=4 {
        drain_until(&mut recording, || {
            (number..number + 100).for_each(|n| tracepoint::trace!(streamed(n)));
            number += 100;
            let stats = watch.stats();
            stats.connections == connection && stats.packets > connection * 100
        });
        if connection < 4 {
            relayd.kill();
            (number..number + 1000).for_each(|n| tracepoint::trace!(streamed(n)));
            number += 1000;
            drain(&mut recording);
            relayd.restart();
        }
    }
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    let streams = &report.account.channels[0].streams;
    let lost: u64 = streams.iter().filter_map(|stream| stream.sink_lost.get("network")).sum();
    assert_eq!(lost, sum(&report.account, |s| s.sink));
    assert_eq!(sum(&report.account, |s| s.recorded), sum(&report.account, |s| s.written + s.sink));
    let found = stored(&sessions(&relayd));
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "nothing is stored twice");
    let recorded = sum(&report.account, |s| s.recorded);
    assert!(found.len() as u64 + lost >= recorded, "{} stored, {lost} lost of {recorded}", found.len());
    assert!(found.len() as u64 <= recorded);
    Ok(())
}
