//! The server's interface for the code that owns it.

use super::dispatcher::Dispatcher;
use super::ingest::{Ingest, TraceClock, metadata as ingest_metadata};
use super::ingest_account::{self, IngestCounts};
use super::options::UdpOptions;
use super::queue::{Layout, PacketQueue, QueuedPacket};
use super::stats::{self, Counters};
use super::worker::Worker;
use crate::account::Account;
use crate::error::SinkError;
use crate::own_thread;
use crate::udp_stats::{UdpStats, UdpWatch};
use fileguard::GuardedFd;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tracepoint_reader::Metadata;
use tracepoint_reader::internal::RecordSizes;
use tracepoint_ring::channel::StreamId;

/// The name of its thread, as shown by `top -H`.
const NAME: &str = "tracepoint-udp";

/// A packet for a server.
#[derive(Debug)]
pub struct Packet {
    /// The stream of the packet.
    pub stream: StreamId,
    /// A CTF packet.
    pub bytes: Vec<u8>,
    /// Number of events in it.
    pub events: u64,
}

/// A UDP trace server: it has a socket and a thread, and sends packets to one client at a time. The protocol is described in `docs/format-udp.md`.
///
/// [`UdpServer::push`] never waits for a client. Dropping the server ends it at once, and queued packets are lost.
pub struct UdpServer {
    address: SocketAddr,
    queue: Arc<PacketQueue>,
    counters: Arc<Counters>,
    listener: Option<(GuardedFd<UdpSocket>, UdpOptions)>,
    ingest: Option<StreamId>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for UdpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpServer")
            .field("address", &self.address)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl UdpServer {
    /// Binds the port. Clients are not answered before [`UdpServer::start`].
    ///
    /// # Errors
    ///
    /// If the address is not one of this machine, or the port is in use; without an address, if `TRACE_SERVER_PORT` does not contain a port.
    pub fn bind(options: UdpOptions) -> Result<Self, SinkError> {
        let requested = options.listen_on()?;
        let listen = || -> io::Result<_> {
            let listener = UdpSocket::bind(requested)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, GuardedFd::new(listener)?, PacketQueue::new(options.limit, options.drops)?))
        };
        let (address, listener, queue) = listen().map_err(|error| {
            let mend = match error.kind() {
                io::ErrorKind::AddrInUse => "another program listens there; choose another port, or 0 for a free one",
                io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
                _ => return SinkError::new(format!("listen on UDP {requested}"), error),
            };
            SinkError::new(format!("listen on UDP {requested}"), io::Error::new(error.kind(), mend))
        })?;
        Ok(Self {
            address,
            queue: Arc::new(queue),
            counters: Arc::default(),
            listener: Some((listener, options)),
            ingest: None,
            thread: None,
        })
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Appends to the metadata of the trace.
    ///
    /// # Errors
    ///
    /// If the complete text is not valid metadata.
    pub fn describe(&self, text: &str) -> Result<(), SinkError> {
        self.describe_bytes(text.as_bytes())
    }

    /// Like [`describe`](Self::describe), for text that need not be UTF-8, as other tracers may write it.
    pub(super) fn describe_bytes(&self, text: &[u8]) -> Result<(), SinkError> {
        let mut state = self.queue.lock();
        let whole = [&state.metadata[..], text].concat();
        let metadata = Metadata::parse(&whole)
            .map_err(|error| SinkError::new("describe events to UDP clients", io::Error::other(error)))?;
        let sizes = RecordSizes::of(&metadata);
        state.layout = Some(Arc::new(Layout { metadata, sizes }));
        state.metadata = whole;
        drop(state);
        self.queue.wake();
        Ok(())
    }

    /// Starts to answer clients. The first part of the metadata must have been described before. `clock` provides the times of ingested messages,
    /// whose channel is added to the metadata.
    ///
    /// # Errors
    ///
    /// If messages cannot be ingested from the path in the options, or cannot be added to this trace; if no thread can be started; if it was already
    /// started.
    pub fn start(&mut self, clock: TraceClock) -> Result<(), SinkError> {
        let failed = |error| SinkError::new("start the UDP trace server", error);
        let Some((listener, options)) = self.listener.take() else {
            return Err(failed(io::Error::other("it runs already")));
        };
        let layout = self.queue.lock().layout.clone();
        let uuid = layout.as_ref().and_then(|layout| layout.metadata.uuid()).unwrap_or_default();
        let ingest = match &options.events_from {
            Some(path) => {
                let class = self.add_ingest(layout.as_deref()).map_err(failed)?;
                Some(Ingest::open(path, uuid, class)?)
            }
            None => None,
        };
        self.ingest = ingest.as_ref().map(Ingest::stream);
        let (flush, linger) = (options.flush, options.linger);
        let dispatcher = Dispatcher::new(
            (listener, self.address),
            options,
            Arc::clone(&self.queue),
            Arc::clone(&self.counters),
            uuid,
            Instant::now(),
        );
        let worker = Worker { dispatcher, ingest, clock, queue: Arc::clone(&self.queue), flush, linger };
        self.thread = Some(own_thread::spawn(NAME, || worker.run()).map_err(failed)?);
        Ok(())
    }

    /// Adds the channel of ingested messages to the metadata. Returns the id of its stream class.
    fn add_ingest(&self, layout: Option<&Layout>) -> io::Result<u32> {
        let refused = |reason| io::Error::new(io::ErrorKind::Unsupported, reason);
        let foreign = || refused("messages can only be added to traces that `tracepoint` has recorded");
        let metadata = &layout.ok_or_else(foreign)?.metadata;
        let clock = metadata.clocks().first();
        let clock = clock.ok_or_else(|| refused("messages can only be added to a trace with a clock"))?;
        let class = metadata.streams().map(|class| class.id + 1).max().unwrap_or(0);
        let class = u32::try_from(class).map_err(|_| io::ErrorKind::Unsupported)?;
        self.describe(&ingest_metadata(class, &clock.name)).map_err(|error| io::Error::other(error.to_string()))?;
        // For a trace without channels, only the layout of the messages is known.
        if self.queue.lock().layout.as_ref().is_some_and(|layout| layout.sizes.is_some()) {
            Ok(class)
        } else {
            Err(foreign())
        }
    }

    /// Returns whether the file of [`UdpOptions::events_from`] was read to its end; always `false` for a FIFO or a socket.
    pub fn has_read_events(&self) -> bool {
        self.queue.lock().ingested.ended
    }

    /// Queues a packet, and drops packets beyond the limit.
    pub fn push(&self, packet: Packet) {
        self.queue.push(held(packet, &self.queue));
    }

    /// Queues a packet as soon as there is space for it. It is never dropped in favour of others. Returns `false`, and counts the events as lost, if
    /// the trace or the server has ended in the meantime, or [`UdpServer::stop_taking`] was called.
    pub fn push_blocking(&self, packet: Packet) -> bool {
        self.queue.push_blocking(held(packet, &self.queue))
    }

    /// Ends waiting in [`UdpServer::push_blocking`]. Waiting packets, and those pushed there from now on, are lost.
    pub fn stop_taking(&self) {
        self.queue.close();
    }

    /// Ends the trace; `account` is its account. The server ends its session and itself when everything is sent. Without a session, it waits for one
    /// for [`UdpOptions::linger`].
    pub fn end(&self, account: Option<Account>) {
        let ingest = self.ingest;
        self.queue.end(|state| {
            let mut account = account?;
            if let Some(stream) = ingest {
                let (recorded, too_long, lost) =
                    (state.ingested.messages, state.ingested.overlong, state.lost.of(stream));
                ingest_account::add(&mut account, IngestCounts { stream, recorded, too_long, lost });
            }
            Some(account.to_json())
        });
    }

    /// Ends the server at once, even while it serves a client. Queued packets are lost.
    pub fn quit(&self) {
        self.queue.quit();
    }

    /// Returns whether it is ending at once, after [`UdpServer::quit`].
    pub(super) fn is_quitting(&self) -> bool {
        self.queue.lock().quit
    }

    /// Returns whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has no consequence here.
            let _ = thread.join();
        }
        self.queue.quit();
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> UdpStats {
        self.watch().stats()
    }

    /// Returns a handle that reads the statistics, independently of the server's owner.
    pub fn watch(&self) -> UdpWatch {
        stats::watch(&self.queue, &self.counters)
    }

    /// Returns the lost events of a stream, by reason.
    pub fn lost(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.queue.lost_of(stream)
    }

    /// Returns the number of events that were pushed or ingested.
    pub fn given(&self) -> u64 {
        self.queue.lock().given
    }

    /// Returns the number of ingested messages, and of those that were too long.
    pub fn messages(&self) -> (u64, u64) {
        let state = self.queue.lock();
        (state.ingested.messages, state.ingested.overlong)
    }
}

impl Drop for UdpServer {
    fn drop(&mut self) {
        self.queue.quit();
        self.wait();
    }
}

fn held(packet: Packet, queue: &PacketQueue) -> QueuedPacket {
    let needs = queue.lock().metadata.len() as u32;
    QueuedPacket {
        stream: packet.stream,
        bytes: packet.bytes,
        events: packet.events,
        done: 0,
        needs,
        is_message: false,
        kept: false,
    }
}
