//! The sockets of a collector: its listeners, one task per connection, and a periodic tick.
//!
//! All tasks run on one thread and share the [`Hub`]; no task holds a borrow of it across an `await`. Each resource of a connection is bounded:
//! - The memory of packets, by a semaphore that counts bytes. A task acquires the size of a packet before it reads the packet, so that when memory is
//!   full, TCP flow control stops the peer.
//! - The number of connections of each kind, and of open files.
//! - The time that a message may take once its first byte has arrived.
//!
//! Each address and each sender has a [share](crate::shares) of these.

mod accept;
mod batch;
mod bounds;
#[cfg(feature = "nats")]
mod brokers;
mod close_on_drop;
mod datagrams;
mod metrics;
mod room;
mod senders;
mod streamed;
mod viewers;

use crate::counts::Counts;
use crate::error::CollectError;
use crate::hub::{Hub, Room, Rotation};
use crate::memory::Memory;
use crate::options::{MIN_MEMORY, Options};
use crate::reorder::Limits;
use crate::shared::ServerState;
use crate::storage::repair::{RepairReport, repair};
use crate::storage::{JobResult, Storage};
use crate::stream_control::Offer;
use accept::accept;
use bounds::Bounds;
use rustix::net::sockopt;
use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

/// Interval at which timeouts are checked.
const TICK: Duration = Duration::from_millis(100);
/// Size of the socket's receive buffer for datagrams, in bytes.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Delay before missing packets are requested again over UDP.
const REORDER_DELAY: Duration = Duration::from_millis(20);
/// Number of ephemeral ports tried until one is free for both TCP and UDP.
const FREE_PORT_TRIES: u32 = 32;
/// Maximum time that shutdown spends on completing files.
const END_TIME: Duration = Duration::from_secs(10);

/// The addresses on which a collector listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// Control connections of senders.
    pub control: SocketAddr,
    /// Packets of senders, over TCP and UDP.
    pub data: SocketAddr,
    /// Viewers.
    pub live: SocketAddr,
    /// Prometheus metrics over HTTP, if [enabled](Options::metrics).
    pub metrics: Option<SocketAddr>,
}

/// The state of a running collector.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Counts since the collector started.
    pub counts: Counts,
    /// Sessions whose senders are connected.
    pub sessions: usize,
    /// Streams of these sessions.
    pub streams: usize,
    /// Attached viewers.
    pub viewers: usize,
    /// Bytes of packets held in memory.
    pub memory: u64,
    /// Open stream files, and the maximum number of them.
    pub files: (usize, usize),
    /// Bytes in the output directory.
    pub disk: u64,
    /// Reason why nothing can be written at present, while senders wait.
    pub full: Option<String>,
    /// Messages since the last report.
    pub messages: Vec<String>,
}

/// A collector whose sockets are bound; it serves nothing until [`run`](Self::run) is called.
#[derive(Debug)]
pub struct Collector {
    options: Options,
    runtime: Runtime,
    listeners: [TcpListener; 3],
    metrics: Option<TcpListener>,
    datagrams: UdpSocket,
    addresses: Addresses,
    found: RepairReport,
    #[cfg(feature = "nats")]
    owner: Option<crate::nats::Owner>,
}

impl Collector {
    /// Creates the output directory, repairs files that a killed collector left in it, and binds the sockets.
    ///
    /// [`run`](Self::run) raises this process's soft limit on open files to its hard limit: each stream has two files.
    ///
    /// # Errors
    ///
    /// [`CollectError`] if the directory cannot be created or read, or if an address cannot be bound. Addresses other than loopback require a
    /// [key](Options::key).
    pub fn bind(options: Options) -> Result<Self, CollectError> {
        let output = options.output.display().to_string();
        let failed = |action: &str| {
            let action = format!("{action} {output}");
            move |error| CollectError::new(action, error)
        };
        if options.needs_key() {
            let why = "other machines could connect; give it one (`--key-file`, `Options::key`), or take everybody (`--no-key`, `Options::without_key`)";
            return Err(CollectError::new("listen without a shared key", io::Error::other(why)));
        }
        std::fs::create_dir_all(&options.output).map_err(failed("create"))?;
        #[cfg(feature = "nats")]
        let owner = options.nats.as_ref().map(|_| crate::nats::Owner::of(&options.output)).transpose();
        #[cfg(feature = "nats")]
        let owner = owner.map_err(failed("collect into"))?;
        let found = repair(&options.output).map_err(failed("repair what is in"))?;
        let listen = |what: &str, address: SocketAddr| {
            let listener = TcpListener::bind(address).and_then(|it| it.set_nonblocking(true).map(|()| it));
            listener.map_err(|error| CollectError::new(format!("listen on {address} for {what}"), error))
        };
        let control = listen("control connections", options.control)?;
        // A port that is free for TCP may be in use for UDP.
        let mut tries = if options.data.port() == 0 { FREE_PORT_TRIES } else { 1 };
        let (data, datagrams) = loop {
            tries -= 1;
            let data = listen("packets", options.data)?;
            let address = data.local_addr().unwrap_or(options.data);
            match UdpSocket::bind(address).and_then(|it| it.set_nonblocking(true).map(|()| it)) {
                Ok(datagrams) => break (data, datagrams),
                Err(error) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => {
                    return Err(CollectError::new(format!("listen on {address} for datagrams"), error));
                }
            }
        };
        let listeners = [control, data, listen("viewers", options.live)?];
        let metrics = options.metrics.map(|address| listen("metrics", address)).transpose()?;
        // With CAP_NET_ADMIN, the size may exceed net.core.rmem_max; otherwise that is the maximum. Datagrams that overflow the buffer are requested
        // again.
        let _ = sockopt::set_socket_recv_buffer_size_force(&datagrams, RECEIVE_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&datagrams, RECEIVE_BUFFER));
        let address = |listener: &TcpListener| {
            listener.local_addr().map_err(|error| CollectError::new("find an address of this machine", error))
        };
        let [control, data, live] = [&listeners[0], &listeners[1], &listeners[2]].map(address);
        let addresses = Addresses {
            control: control?,
            data: data?,
            live: live?,
            metrics: metrics.as_ref().map(address).transpose()?,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build();
        let runtime = runtime.map_err(|error| CollectError::new("start", error))?;
        Ok(Self {
            options,
            runtime,
            listeners,
            metrics,
            datagrams,
            addresses,
            found,
            #[cfg(feature = "nats")]
            owner,
        })
    }

    /// Returns the addresses on which the collector listens.
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Receives, stores and serves traces until `report` returns `false`; it is called ten times per second. Then closes all sessions and completes
    /// their files.
    ///
    /// # Errors
    ///
    /// [`CollectError`] if the storage thread cannot be started.
    pub fn run(self, report: impl FnMut(&Report) -> bool) -> Result<Counts, CollectError> {
        let Self { options, runtime, listeners, metrics, datagrams, addresses, found, .. } = self;
        let bounds = Bounds::of_this_process(options.files, options.open_files);
        keep_freed_memory();
        let (sender, done) = tokio::sync::mpsc::unbounded_channel();
        let storage = Storage::start(found.bytes, options.quota, options.write_rate, sender);
        let storage = storage.map_err(|error| CollectError::new("start the thread that writes", error))?;
        let mut hub = Hub::new(options.output.clone(), storage);
        hub.rotation = Rotation {
            size: options.rotate_size,
            every: options.rotate_every,
            keep: options.keep,
            quota: options.quota,
        };
        if found.sessions > 0 {
            let RepairReport { sessions, cut_off, .. } = found;
            hub.say(format!(
                "made {sessions} sessions of a killed collector whole; cut off {cut_off} bytes of incomplete packets"
            ));
        }
        let memory = usize::try_from(options.memory.max(MIN_MEMORY)).unwrap_or(usize::MAX);
        hub.share = memory as u64 / 4;
        (hub.memory, hub.room) = (Memory::new(memory), Room::new(bounds.files));
        #[cfg(feature = "nats")]
        let brokers = brokers::Brokers::new(&options, self.owner);
        #[cfg(feature = "nats")]
        {
            hub.publishes = options.publish.is_some();
        }
        let shared = Rc::new(ServerState {
            #[cfg(feature = "nats")]
            nats: brokers.collecting(),
            #[cfg(feature = "nats")]
            publish: brokers.publishing(),
            hub: RefCell::new(hub),
            #[cfg(feature = "nats")]
            all_memory: memory,
            largest: u32::try_from(memory / 2).unwrap_or(u32::MAX),
            offer: Offer {
                ports: (addresses.data.port(), addresses.data.port()),
                window: memory as u64 / 16,
                key: options.key,
                allows_stock: options.allow_stock,
                allows_stock_viewers: options.allow_stock_viewers,
                name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
                limits: Limits {
                    packets: options.gap_packets,
                    bytes: memory as u64 / 4,
                    time: options.gap_time,
                    delay: REORDER_DELAY,
                    end_delay: REORDER_DELAY,
                },
            },
        });
        let tasks = LocalSet::new();
        #[cfg(feature = "nats")]
        brokers.start(&shared, &tasks);
        tasks.block_on(&runtime, serve(&shared, bounds, (listeners, metrics, datagrams), done, report))
    }
}

/// Makes glibc's allocator keep up to 8 MiB of freed memory. Otherwise it returns the memory of each stored packet to the kernel, and the next packet
/// takes a page fault per page. The threshold is twice the size of the largest mapping freed so far (`mallopt(3)`); this one's pages are never
/// touched.
fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(4 << 20)));
}

async fn serve(
    shared: &Rc<ServerState>,
    bounds: Bounds,
    (listeners, metrics, datagrams): ([TcpListener; 3], Option<TcpListener>, UdpSocket),
    mut done: UnboundedReceiver<(u64, JobResult)>,
    mut report: impl FnMut(&Report) -> bool,
) -> Result<Counts, CollectError> {
    let [control, data, live] = listeners.map(tokio::net::TcpListener::from_std);
    let failed = |error| CollectError::new("listen", error);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn_local(accept(Rc::clone(shared), control.map_err(failed)?, bounds.senders, senders::control));
    tasks.spawn_local(accept(Rc::clone(shared), data.map_err(failed)?, bounds.senders, senders::data));
    tasks.spawn_local(accept(Rc::clone(shared), live.map_err(failed)?, bounds.viewers, viewers::viewer));
    if let Some(metrics) = metrics {
        let metrics = tokio::net::TcpListener::from_std(metrics).map_err(failed)?;
        tasks.spawn_local(accept(Rc::clone(shared), metrics, bounds.metrics, metrics::metrics));
    }
    let datagrams = tokio::net::UdpSocket::from_std(datagrams).map_err(failed)?;
    tasks.spawn_local(datagrams::datagrams(Rc::clone(shared), datagrams));
    let of_done = Rc::clone(shared);
    let storage = tokio::task::spawn_local(async move {
        while let Some((handle, done)) = done.recv().await {
            of_done.hub.borrow_mut().done(handle, done, Instant::now());
        }
    });
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.hub.borrow_mut().tick(Instant::now());
        if !report(&shared.report()) {
            break;
        }
    }
    #[cfg(feature = "nats")]
    brokers::release(shared).await;
    // No new connections from here on; packets that have arrived are still stored.
    drop(tasks);
    shared.hub.borrow_mut().close_all(Instant::now());
    if shared.hub.borrow().full.is_some() {
        shared.hub.borrow().storage.give_up();
    }
    let end = Instant::now() + END_TIME;
    while shared.hub.borrow().sessions().any(|(_, session)| !session.is_closed()) && Instant::now() < end {
        ticks.tick().await;
        shared.hub.borrow_mut().tick(Instant::now());
    }
    shared.hub.borrow().storage.give_up();
    #[cfg(feature = "nats")]
    brokers::flush(shared).await;
    report(&shared.report());
    storage.abort();
    Ok(shared.hub.borrow().counts)
}

impl ServerState {
    /// Returns the state and the messages since the last call.
    fn report(&self) -> Report {
        let messages = self.hub.borrow_mut().messages();
        Report { messages, ..self.state() }
    }

    fn state(&self) -> Report {
        let hub = self.hub.borrow();
        let open: Vec<_> =
            hub.sessions().filter(|(_, session)| session.is_open()).map(|(_, session)| session).collect();
        Report {
            counts: hub.counts,
            sessions: open.len(),
            streams: open.iter().map(|session| session.streams.len()).sum(),
            viewers: hub.sessions().map(|(_, session)| session.viewers).sum(),
            memory: hub.memory.used(),
            files: (hub.room.files.used(), hub.room.files.most()),
            disk: hub.storage.used(),
            full: hub.full.clone(),
            messages: Vec::new(),
        }
    }
}
