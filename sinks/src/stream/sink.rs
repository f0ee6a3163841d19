//! The sink that streams a session's packets.

use super::delivery::Deliveries;
use super::options::StreamOptions;
use super::queue::{Item, Queue, QueuedPacket};
use super::session::Identity;
use super::worker::Worker;
use crate::account::Account;
use crate::bandwidth::Bandwidth;
use crate::bucket;
use crate::description::{ChannelDescription, NewEvents, TraceStart};
use crate::destination::flush_age;
use crate::error::SinkError;
use crate::own_thread;
use crate::sink::{Sink, SinkExtension, StreamInfo};
use crate::stream_stats::StreamWatch;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracepoint_reader::internal::Watermark;
use tracepoint_reader::time_namespace::is_own_clock;
use tracepoint_ring::channel::{Packet, PacketHeader, Policy};
use tracepoint_ring::clock;

/// The thread's name, as shown by `top -H`.
const NAME: &str = "tracepoint-send";
/// Maximum delay of a thread between reading the clock and the commit, where it is known which packets are closed.
const LATE: Duration = Duration::from_millis(200);
/// Additional time for the thread to end after its flush time, in which it asks the peer which packets it has.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Streams the packets of a session over a network while they are recorded: see `docs/format-stream.md`.
///
/// The recording starts when the peer has acknowledged the session. While the peer cannot be reached, packets wait in memory up to a limit and then
/// in their rings, whose policy applies; the sink reconnects by itself. When the session ends, the sink sends the rest, for as long as
/// [`StreamOptions::flush`] allows. The account has the losses by reason.
///
/// ```no_run
/// use tracepoint_sinks::stream::StreamOptions;
/// use tracepoint_sinks::{SinkError, StreamSink};
///
/// let sink = StreamSink::new(StreamOptions::to("relay.lan".parse().expect("an address")))?;
/// let watch = sink.watch();
/// # Ok::<(), SinkError>(())
/// ```
#[derive(Debug)]
pub struct StreamSink {
    options: StreamOptions,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    /// Maximum time that a packet stays in its ring; `None` if later packets may contain older events, because a channel is a flight recorder.
    packet_delay: Option<Duration>,
    /// Set from the first round on.
    watermark: Option<Watermark>,
    /// Set if the trace uses this host's clock.
    has_system_clock: bool,
    /// When the last synchronisation point was queued, and its time.
    synchronised: Option<(Instant, u64)>,
}

impl StreamSink {
    /// Creates a sink that connects when the session starts.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptor left.
    pub fn new(options: StreamOptions) -> Result<Self, SinkError> {
        let queue = Queue::new(options.resend_buffer, options.flush)
            .map_err(|error| SinkError::new("make a pipe for a sender", error))?;
        Ok(Self {
            options,
            queue: Arc::new(queue),
            thread: None,
            packet_delay: None,
            watermark: None,
            has_system_clock: false,
            synchronised: None,
        })
    }

    /// Returns a handle that reads the statistics while a session uses the sink.
    pub fn watch(&self) -> StreamWatch {
        StreamWatch::new(self.queue.clone(), self.options.peer())
    }

    fn failed(&self, error: io::Error) -> SinkError {
        SinkError::new(format!("stream to {}", self.options.peer()), error)
    }

    fn look_at(&mut self, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        let sizes = channels.iter().map(|channel| (channel.class, channel.packet_size));
        self.queue.change(|state| state.packet_sizes.extend(sizes));
        // Flight recorders provide no packets before the end.
        if channels.iter().any(|channel| channel.policy == Policy::Overwrite) {
            self.packet_delay = None;
        }
        let largest = channels.iter().map(|channel| channel.packet_size).max().unwrap_or_default();
        self.options.bandwidth.check(largest).map_err(|error| self.failed(error))
    }
}

impl Sink for StreamSink {
    fn name(&self) -> String {
        format!("stream to {}", self.options.peer())
    }

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        let clock = start.trace.clock.uuid.filter(|clock| is_own_clock(*clock));
        self.has_system_clock = clock.is_some();
        self.packet_delay = Some(start.packet_delay);
        self.options.bandwidth.begin();
        self.look_at(start.channels)?;
        let process = &start.trace.process;
        let of_trace = || {
            let [a, b, c, d, ..] = start.trace.uuid;
            format!("{}-{}-{a:02x}{b:02x}{c:02x}{d:02x}", process.name, process.pid)
        };
        let identity = Identity {
            uuid: start.trace.uuid,
            clock: clock.unwrap_or_default(),
            pid: process.pid,
            host: process.hostname.clone(),
            session: start.trace.name.clone(),
            process: self.options.process.clone().unwrap_or_else(of_trace),
        };
        self.queue.change(|state| {
            start.metadata.clone_into(&mut state.metadata);
            state.waiting = self.has_system_clock.then(HashMap::new);
        });
        let worker = Worker::new(Arc::clone(&self.queue), self.options.clone(), identity);
        let worker = worker.map_err(|error| self.failed(error))?;
        let thread = own_thread::spawn(NAME, || worker.run());
        self.thread = Some(thread.map_err(|error| self.failed(error))?);
        let Some(retry) = self.options.retry else { return Ok(()) };
        let time = retry.saturating_add(Duration::from_secs(60));
        let state = self.queue.wait_until(time, |state| state.stats.connections > 0 || state.over);
        match &state.refused {
            Some(reason) => Err(self.failed(io::Error::new(io::ErrorKind::NotConnected, reason.clone()))),
            None => Ok(()),
        }
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        self.look_at(new.channels)?;
        self.queue.change(|state| state.metadata.push_str(new.metadata));
        Ok(())
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        let header = PacketHeader::parse(packet.bytes);
        if let Some(watermark) = &mut self.watermark {
            watermark.observe(i64::try_from(header.end).unwrap_or(i64::MAX));
        }
        let (events_before, events_after) = (packet.events_before, packet.events_after);
        let bytes = packet.bytes.to_vec();
        let (stream, queued) = (stream.clone(), bucket::now());
        self.queue.push(QueuedPacket { stream, header, bytes, events_before, events_after, queued });
        Ok(())
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.queue.change(|state| (state.ended, state.account) = (true, Some(account.clone())));
        let mut state = self.queue.wait_until(self.options.flush.saturating_add(END_TIMEOUT), |state| state.over);
        let is_over = state.over;
        if !is_over {
            state.quit = true;
            state.end();
        }
        let trouble = state.stats.trouble.clone();
        let lost = state.lost_at_end();
        drop(state);
        if is_over {
            // A panic of the thread has no consequence here.
            let _ = self.thread.take().map(JoinHandle::join);
        }
        match trouble {
            Some(trouble) => Err(self.failed(io::Error::other(trouble))),
            None if is_over && lost == 0 => Ok(()),
            None => {
                let why = format!("the peer has not acknowledged {lost} events in time, which are counted as lost");
                Err(self.failed(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
        }
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl SinkExtension for StreamSink {
    fn adjust_account(&self, account: &mut Account) {
        for channel in &mut account.channels {
            for stream in channel.streams.iter_mut().filter(|stream| stream.packets > 0) {
                stream.file = format!("{}_{}", channel.name, stream.instance);
            }
        }
        let mut state = self.queue.lock();
        state.deliveries.add_lost(account, &Deliveries::default());
        if !state.ended {
            state.reported = state.deliveries.clone();
        }
    }

    fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    fn bandwidth(&mut self) -> Option<&mut Bandwidth> {
        Some(&mut self.options.bandwidth)
    }

    fn stream(&self) -> Option<StreamWatch> {
        Some(self.watch())
    }

    fn flush_age(&self) -> Option<Duration> {
        Some(flush_age(self.options.sync_interval))
    }

    fn round_ended(&mut self, flushed: Option<u64>) {
        let Some(delay) = self.packet_delay else { return };
        let delay = if flushed.is_some() { delay.min(LATE) } else { delay };
        let watermark = self.watermark.get_or_insert_with(|| Watermark::new(delay));
        let now = Instant::now();
        if self.has_system_clock {
            watermark.observe(i64::try_from(clock::now()).unwrap_or(i64::MAX));
        }
        let Ok(time) = u64::try_from(watermark.advance(now)) else { return };
        let time = time.min(flushed.unwrap_or(u64::MAX));
        let is_due = self
            .synchronised
            .is_none_or(|(last, before)| time > before && now.duration_since(last) >= self.options.sync_interval);
        if is_due {
            self.synchronised = Some((now, time));
            self.queue.change(|state| state.items.push_back(Item::Sync(time)));
        }
    }
}

impl Drop for StreamSink {
    fn drop(&mut self) {
        self.queue.change(|state| state.quit = true);
        let _ = self.thread.take().filter(JoinHandle::is_finished).map(JoinHandle::join);
    }
}
