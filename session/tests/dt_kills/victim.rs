//! The program that is killed: threads that count, and a sink that reports each packet to the judge once the file contains it.

use crate::describe::describe;
use crate::{Ready, Round};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tracepoint::marker::Subscriber;
use tracepoint_ring::channel::{AnonymousMemory, OpenChannel, Packet};
use tracepoint_session::sinks::account::Account;
use tracepoint_session::sinks::{
    ClockInfo, Drain, DtSink, NewEvents, ProcessInfo, Sink, SinkError, SinkExtension, StreamInfo, TraceInfo, TraceStart,
};
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "dt_kills";
    /// A thread counts.
    pub counted(n: u64) { n: u64 = n, twice: u64 = n.wrapping_mul(2), text: str = "counting" }
}

/// The file of the trace.
pub(crate) const TRACE: &str = "trace.dt";
/// For each stream: the number of its events and packets that were handed over, 8 bytes each.
pub(crate) const HANDED_OVER: &str = "handed-over";

/// A [`DtSink`] that reports its packets.
struct CountingSink {
    sink: DtSink,
    handed_over: File,
    packets: Vec<u64>,
    round: Round,
}

impl CountingSink {
    /// Notifies the parent that the process may be killed, if this is the time of the round.
    fn say_ready(&self, when: Ready) {
        if self.round.ready == when {
            let mut out = std::io::stdout();
            out.write_all(b"!").and_then(|()| out.flush()).expect("the parent reads it");
        }
    }
}

impl Sink for CountingSink {
    fn name(&self) -> String {
        self.sink.name()
    }

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        self.sink.begin(start)
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        self.sink.describe(new)?;
        self.say_ready(Ready::WithTheFile);
        Ok(())
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        self.sink.packet(stream, packet)?;
        if packet.events_after > packet.events_before {
            let place = stream.id.instance as usize;
            self.packets.resize(self.packets.len().max(place + 1), 0);
            self.packets[place] += 1;
            let bytes = [packet.events_after.to_le_bytes(), self.packets[place].to_le_bytes()].concat();
            self.handed_over.write_all_at(&bytes, 16 * place as u64).expect("room");
            if self.packets.iter().sum::<u64>() == u64::from(self.round.slots) + 1 {
                self.say_ready(Ready::Wrapped);
            }
        }
        Ok(())
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.sink.finish(account)
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        self.sink.extension()
    }
}

/// Records forever: event `n` of each thread is its `n`th.
pub(crate) fn record_for_ever(directory: &Path, round: Round) -> ! {
    let handed_over = File::create(directory.join(HANDED_OVER)).expect("a file");
    let sink = DtSink::create(directory.join(TRACE), round.slots).expect("a new file");
    let sink = CountingSink { sink, handed_over, packets: Vec::new(), round };
    sink.say_ready(Ready::BeforeTheFile);
    let channel = Channel::wait(round.ring, Duration::from_secs(10)).packets(4);
    if round.session {
        let session =
            Session::builder("killed").events("*").channel(channel).in_memory().sink(sink).start().expect("it starts");
        thread::scope(|scope| count_for_ever(scope, round.threads));
        unreachable!("{session:?} is killed before")
    }
    drain_without_pause(channel, sink, round.threads)
}

fn count_for_ever<'scope>(scope: &'scope thread::Scope<'scope, '_>, threads: u32) {
    for _ in 0..threads {
        scope.spawn(|| {
            let mut n = 0;
            loop {
                tracepoint::trace!(counted(n));
                n += 1;
            }
        });
    }
}

/// Drains like a session, but without pause.
fn drain_without_pause(channel: Channel, sink: CountingSink, threads: u32) -> ! {
    let uuid = *b"killed, killed, ";
    let process = ProcessInfo { pid: std::process::id(), ..ProcessInfo::default() };
    let trace = TraceInfo { uuid, name: "killed".to_owned(), clock: ClockInfo::default(), process };
    let channel = OpenChannel::open(channel, uuid, 0, 1, Box::new(AnonymousMemory)).expect("memory");
    let mut drain = Drain::new(trace, vec![Arc::clone(&channel)]);
    drain.add_sink(Box::new(sink)).expect("room");
    let marker =
        tracepoint::runtime::markers().find(|marker| marker.full_name() == "dt_kills:counted").expect("declared");
    let id = channel.add_event().expect("it is the first");
    drain.describe(&[describe(marker, channel.class(), id.get())]).expect("room");
    let _consumers = drain.register_consumers();
    let _subscription = marker.subscribe(Subscriber::record(channel, id)).expect("switches");
    thread::scope(|scope| {
        count_for_ever(scope, threads);
        loop {
            drain.drain();
        }
    })
}
