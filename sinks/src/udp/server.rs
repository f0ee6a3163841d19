//! The server, as its owner sees it.

use super::books::{self, OutsideBooks};
use super::desk::Desk;
use super::options::UdpOptions;
use super::outside::{Outside, metadata as outside_metadata};
use super::stats::{Counters, UdpStats, UdpWatch};
use super::store::{Held, Layout, Store};
use super::work::Work;
use crate::account::Account;
use crate::error::SinkError;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;
use tracepoint_core::channel::StreamId;
use tracepoint_reader::Metadata;
use tracepoint_reader::internal::RecordSizes;

/// Its thread's name, as `top -H` shows it.
const NAME: &str = "tracepoint-udp";

/// The time on a trace's clock, in nanoseconds.
pub type TraceClock = Box<dyn Fn() -> u64 + Send>;

/// A packet for a server.
#[derive(Debug)]
pub struct Packet {
    /// The stream that it belongs to.
    pub stream: StreamId,
    /// Its bytes: CTF from the first to the last.
    pub bytes: Vec<u8>,
    /// How many events it holds.
    pub events: u64,
}

/// A UDP trace server: it has a socket and a thread, and sends packets to one client at a time. `docs/format-udp.md` has the
/// protocol.
///
/// Who brings packets never waits for a client. Dropping the server ends it at once; what still waits is lost then.
pub struct UdpServer {
    address: SocketAddr,
    store: Arc<Store>,
    counters: Arc<Counters>,
    listener: Option<(UdpSocket, UdpOptions)>,
    outside: Option<StreamId>,
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
    /// Takes the port. Nobody is answered before [`UdpServer::start`].
    ///
    /// # Errors
    ///
    /// If the address is not one of this machine's, or its port is taken.
    pub fn bind(options: UdpOptions) -> Result<Self, SinkError> {
        let asked = options.address;
        let listen = || -> io::Result<_> {
            let listener = UdpSocket::bind(asked)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener, Store::new(options.limit, options.drops)?))
        };
        let (address, listener, store) = listen().map_err(|error| {
            let mend = match error.kind() {
                io::ErrorKind::AddrInUse => "another program listens there; choose another port, or 0 for a free one",
                io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
                _ => return SinkError::new(format!("listen on UDP {asked}"), error),
            };
            SinkError::new(format!("listen on UDP {asked}"), io::Error::new(error.kind(), mend))
        })?;
        Ok(Self {
            address,
            store: Arc::new(store),
            counters: Arc::default(),
            listener: Some((listener, options)),
            outside: None,
            thread: None,
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds to the trace's metadata.
    ///
    /// # Errors
    ///
    /// If the text so far and this are no metadata.
    pub fn describe(&self, text: &str) -> Result<(), SinkError> {
        self.describe_bytes(text.as_bytes())
    }

    /// The same, in the packets of other tracers, too.
    pub(super) fn describe_bytes(&self, text: &[u8]) -> Result<(), SinkError> {
        let mut inside = self.store.lock();
        let whole = [&inside.metadata[..], text].concat();
        let metadata = Metadata::parse(&whole)
            .map_err(|error| SinkError::new("describe events to UDP clients", io::Error::other(error)))?;
        let sizes = RecordSizes::of(&metadata);
        inside.layout = Some(Arc::new(Layout { metadata, sizes }));
        inside.metadata = whole;
        drop(inside);
        self.store.wake();
        Ok(())
    }

    /// Begins to answer. The trace's first metadata has been described. `clock` gives the times of events from outside, which
    /// are those of a channel that is added to the metadata.
    ///
    /// # Errors
    ///
    /// If events from outside cannot be taken from where the options say, or cannot be added to this trace; if there is no
    /// thread to be had; if it was started already.
    pub fn start(&mut self, clock: TraceClock) -> Result<(), SinkError> {
        let failed = |error| SinkError::new("start the UDP trace server", error);
        let Some((listener, options)) = self.listener.take() else {
            return Err(failed(io::Error::other("it runs already")));
        };
        let layout = self.store.lock().layout.clone();
        let uuid = layout.as_ref().and_then(|layout| layout.metadata.uuid()).unwrap_or_default();
        let outside = match &options.events_from {
            Some(path) => {
                let class = self.add_outside(layout.as_deref()).map_err(failed)?;
                Some(Outside::open(path, uuid, class)?)
            }
            None => None,
        };
        self.outside = outside.as_ref().map(Outside::stream);
        let (flush, linger) = (options.flush, options.linger);
        let desk =
            Desk::new(listener, options, Arc::clone(&self.store), Arc::clone(&self.counters), uuid, Instant::now());
        let work = Work { desk, outside, clock, store: Arc::clone(&self.store), flush, linger };
        self.thread = Some(Builder::new().name(NAME.to_owned()).spawn(|| work.run()).map_err(failed)?);
        Ok(())
    }

    /// Adds the channel of events from outside to the metadata: the id of its stream class.
    fn add_outside(&self, layout: Option<&Layout>) -> io::Result<u32> {
        let refused = |reason| Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        let Some(Layout { metadata, sizes: Some(_) }) = layout else {
            return refused("events from outside can be added to traces of `tracepoint` alone");
        };
        let Some(clock) = metadata.clocks().first() else {
            return refused("events from outside need a trace with a clock");
        };
        let class = metadata.streams().map(|class| class.id + 1).max().unwrap_or(0);
        let class = u32::try_from(class).map_err(|_| io::ErrorKind::Unsupported)?;
        self.describe(&outside_metadata(class, &clock.name)).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(class)
    }

    /// The stream of events from outside, once the server was started, if there is one.
    pub const fn outside(&self) -> Option<StreamId> {
        self.outside
    }

    /// Gives it a packet, and drops what is over the limit.
    pub fn push(&self, packet: Packet) {
        self.store.push(held(packet, &self.store));
    }

    /// Gives it a packet as soon as there is room for it. It is not dropped for others. `false` if the trace or the server was ended
    /// meanwhile, or takes no more: its events are counted as lost.
    pub fn push_when_there_is_room(&self, packet: Packet) -> bool {
        self.store.push_when_there_is_room(held(packet, &self.store))
    }

    /// What [`UdpServer::push_when_there_is_room`] waits with, and is given from here on, is lost, for nobody came for it in time.
    pub fn take_no_more(&self) {
        self.store.close();
    }

    /// The trace has ended: nothing will be added to it but this account. The server ends its session when all is sent, and
    /// then itself; without a session it waits for one, for as long as its options say.
    pub fn end(&self, account: Option<Account>) {
        let outside = self.outside;
        self.store.end(|inside| {
            let mut account = account?;
            if let Some(stream) = outside {
                let (recorded, too_long, lost) = (inside.messages, inside.overlong, inside.lost_of(stream));
                books::add(&mut account, OutsideBooks { stream, recorded, too_long, lost });
            }
            Some(account.to_json())
        });
    }

    /// Ends it at once, whoever is being served. What still waits is lost.
    pub fn quit(&self) {
        self.store.quit();
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // It has no panic that could come out here, and there is nobody to tell.
            let _ = thread.join();
        }
        self.store.quit();
    }

    /// What it has done so far.
    pub fn stats(&self) -> UdpStats {
        self.watch().stats()
    }

    /// Tells how it fares, wherever the server itself is by then.
    pub fn watch(&self) -> UdpWatch {
        UdpWatch::new(&self.store, &self.counters)
    }

    /// What was lost of a stream, by reason.
    pub fn lost(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.store.lost_of(stream)
    }

    /// How many events it was given, those from outside included.
    pub fn given(&self) -> u64 {
        self.store.lock().given
    }

    /// How many messages from outside became events, and how many were too long for that.
    pub fn messages(&self) -> (u64, u64) {
        let inside = self.store.lock();
        (inside.messages, inside.overlong)
    }
}

impl Drop for UdpServer {
    fn drop(&mut self) {
        self.store.quit();
        self.wait();
    }
}

fn held(packet: Packet, store: &Store) -> Held {
    let needs = store.lock().metadata.len() as u32;
    Held {
        stream: packet.stream,
        bytes: packet.bytes,
        events: packet.events,
        done: 0,
        needs,
        outside: false,
        kept: false,
    }
}
