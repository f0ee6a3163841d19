//! Sinks that fail, stall and make short writes: the program continues, and the events that they did not write are counted.

use crate::common::{Outcome, assert_balances, event, lost, place, sum_of_streams, view};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::account::Account;
use tracepoint_session::sinks::{CtfSink, NewEvents, Sink, SinkError, SinkExtension, StreamInfo, TextSink, TraceStart};
use tracepoint_session::{Channel, Session, SessionBuilder, SessionError, Status, Summary};

tracepoint::define_trace! {
    provider = "weather";
    pub seen(n: u64) { n: u64 = n }
}

fn session() -> SessionBuilder {
    Session::builder("weather")
        .events("weather:*")
        .in_memory()
        .channel(Channel::discard(64 << 10).packets(16).overflow(0))
}

/// Fires until the status satisfies the condition.
fn fire_until(session: &Session, n: &mut u64, enough: impl Fn(&Status) -> bool) {
    while !enough(&session.status()) {
        (*n..*n + 1000).for_each(|n| tracepoint::trace!(seen(n)));
        *n += 1000;
        thread::sleep(Duration::from_millis(3));
    }
}

/// Returns the error of `stop` for a sink that failed, and the summary.
fn failure(session: Session) -> Result<(String, Summary), Box<dyn std::error::Error>> {
    match session.stop() {
        Ok(summary) => Err(format!("nothing is said: {summary:?}").into()),
        Err(SessionError::Sinks { failures, summary }) => Ok((failures[0].to_string(), *summary)),
        Err(error) => Err(error.into()),
    }
}

/// Checks that fired events are recorded or lost, and recorded events are written or lost.
fn check_account(summary: &Summary, fired: u64) -> Outcome {
    let seen = event(summary, "weather:seen");
    assert_eq!((seen.fired, seen.fired), (fired, seen.recorded + lost(seen)), "{seen:?}");
    let streams = &summary.account().ok_or("no account")?.channels[0].streams;
    let accounted: u64 = streams.iter().map(|stream| stream.written + stream.sink + stream.overwritten).sum();
    assert_eq!(accounted, seen.recorded, "{streams:?}");
    Ok(())
}

/// A CTF directory on a medium that fails for a while, with one system error, at one packet in three or at all.
struct Stormy {
    directory: CtfSink,
    errno: i32,
    storm: Arc<AtomicBool>,
    packets: u64,
}

impl Sink for Stormy {
    fn name(&self) -> String {
        self.directory.name()
    }

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        self.directory.begin(start)
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        self.directory.describe(new)
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &tracepoint_ring::channel::Packet<'_>) -> Result<(), SinkError> {
        self.packets += 1;
        if self.storm.load(Ordering::Relaxed) && !self.packets.is_multiple_of(3) {
            return Err(SinkError::new("write the medium", io::Error::from_raw_os_error(self.errno)));
        }
        self.directory.packet(stream, packet)
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.directory.finish(account)
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        self.directory.extension()
    }
}

fn stormy(dir: &Path, errno: Errno) -> Result<(Stormy, Arc<AtomicBool>), Box<dyn std::error::Error>> {
    let storm = Arc::new(AtomicBool::new(true));
    let sink =
        Stormy { directory: CtfSink::create(dir)?, errno: errno.raw_os_error(), storm: Arc::clone(&storm), packets: 0 };
    Ok((sink, storm))
}

#[test]
fn failed_packets_are_counted_and_later_ones_are_tried() -> Outcome {
    own_process!();
    let place = place();
    for (errno, words) in [
        (Errno::IO, "Input/output error"),
        (Errno::ROFS, "this user may write to"),
        (Errno::DQUOT, "make room"),
        (Errno::AGAIN, "temporarily unavailable"),
    ] {
        let dir = place.path().join(errno.raw_os_error().to_string());
        let (sink, storm) = stormy(&dir, errno)?;
        let session = session().sink(sink).start()?;
        let mut n = 0;
        fire_until(&session, &mut n, |status| status.sinks[0].refused > 20 && status.sinks[0].packets > 5);
        storm.store(false, Ordering::Relaxed);
        let before = session.status().bytes();
        fire_until(&session, &mut n, |status| status.bytes() > before + (32 << 10));
        let (said, summary) = failure(session)?;
        assert!(said.contains(words) && said.contains("packets were lost"), "{said}");
        check_account(&summary, n)?;
        let account = summary.account().ok_or("no account")?;
        let written = sum_of_streams(account, |stream| stream.written);
        assert!(sum_of_streams(account, |stream| stream.sink) > 0 && written > 0, "{account:?}");
        let viewed = view(&[&dir]);
        assert_eq!((viewed.lines.len() as u64, viewed.discarded_packets() > 20), (written, true));
        assert_balances(&dir);
    }
    Ok(())
}

/// A small number of events.
const EVENTS: u64 = 500;

/// Text on a medium that accepts a few bytes at a time and is interrupted in between.
#[derive(Clone, Default)]
struct Trickle(Arc<Mutex<(Vec<u8>, usize)>>);

impl Write for Trickle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().map_err(|_| io::ErrorKind::Other)?;
        state.1 += 1;
        if state.1.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let part = bytes.len().min(1 + state.1 % 7);
        state.0.extend_from_slice(&bytes[..part]);
        Ok(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn short_writes_are_completed() -> Outcome {
    own_process!();
    let out = Trickle::default();
    let session = session().sink(TextSink::new(out.clone())).start()?;
    (0..EVENTS).for_each(|n| tracepoint::trace!(seen(n)));
    let summary = session.stop()?;
    check_account(&summary, EVENTS)?;
    let text = String::from_utf8(out.0.lock().map_err(|_| "it panicked")?.0.clone())?;
    assert_eq!(text.lines().count() as u64, EVENTS);
    for (n, line) in text.lines().enumerate() {
        assert!(line.ends_with(&format!(" n={n}")), "{line}");
    }
    Ok(())
}

#[test]
fn a_full_device_affects_its_own_sink_only() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let full = TextSink::new(File::options().write(true).open("/dev/full")?).pending(1);
    let session = session().sink(full).sink(CtfSink::create(&dir)?).start()?;
    let mut n = 0;
    fire_until(&session, &mut n, |status| status.sinks[0].refused > 5 && status.sinks[1].packets > 5);
    let (said, summary) = failure(session)?;
    assert!(said.contains("No space left") && said.contains("make room"), "{said}");
    check_account(&summary, n)?;
    let [(_, text), (_, ctf)] = &summary.accounts[..] else { return Err("two accounts".into()) };
    assert!(text.channels[0].streams.iter().any(|stream| stream.sink > 0));
    assert!(ctf.channels[0].streams.iter().all(|stream| stream.sink == 0));
    assert_eq!(view(&[&dir]).lines.len() as u64, event(&summary, "weather:seen").recorded);
    assert_balances(&dir);
    Ok(())
}

#[test]
fn a_stalled_and_broken_pipe_does_not_stop_the_session() -> Outcome {
    own_process!();
    let (reader, writer) = io::pipe()?;
    let session = session().sink(TextSink::new(writer).pending(1)).start()?;
    // The pipe is not read: the sink blocks, and so does `Session::status`, but the program does not.
    let mut n = 0;
    for _ in 0..50 {
        (n..n + 1000).for_each(|n| tracepoint::trace!(seen(n)));
        n += 1000;
        thread::sleep(Duration::from_millis(1));
    }
    let mut lines = BufReader::new(reader).lines();
    for expected in 0..1000 {
        let line = lines.next().ok_or("the text ends")??;
        assert!(line.ends_with(&format!(" n={expected}")), "{line}");
    }
    drop(lines);
    fire_until(&session, &mut n, |status| status.sinks[0].refused > 5);
    let (said, summary) = failure(session)?;
    assert!(said.contains("the program that read this output has ended"), "{said}");
    check_account(&summary, n)?;
    let seen = event(&summary, "weather:seen");
    assert!(seen.lost["ring_full"] > 0, "{seen:?}");
    Ok(())
}
