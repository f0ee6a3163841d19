//! The sockets: listeners, a task for each connection, and a tick.
//!
//! All tasks run on one thread and share the [`Hub`]; none holds it while it waits. What a connection may use is bounded: the memory of packets by a
//! semaphore of bytes, from which a task takes the size of a packet before it reads it, so that a full memory stops the peer by TCP's own
//! flow control; the number of connections of each kind and of open files; the time of a message that has begun. Each address and each sender
//! has its [share](crate::shares) of these.

mod accept;
mod bounds;
#[cfg(feature = "nats")]
mod brokers;
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
use crate::options::Options;
use crate::reorder::Limits;
use crate::shared::Shared;
use crate::storage::repair::{Found, repair};
use crate::storage::{Done, Storage};
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

/// The time between two looks at what has waited too long.
const TICK: Duration = Duration::from_millis(100);
/// The buffer of the system for datagrams, in bytes.
const RECEIVE_BUFFER: usize = 8 << 20;
/// The time after which packets are asked for again over UDP.
const REORDER_DELAY: Duration = Duration::from_millis(20);
/// How many free ports are tried, until one is free for connections and for datagrams.
const FREE_PORT_TRIES: u32 = 32;
/// How long files are completed at the end.
const END_TIME: Duration = Duration::from_secs(10);

/// The addresses on which a collector listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// For control connections of senders.
    pub control: SocketAddr,
    /// For packets of senders.
    pub data: SocketAddr,
    /// For viewers.
    pub live: SocketAddr,
    /// For Prometheus, if it was asked for.
    pub metrics: Option<SocketAddr>,
}

/// The state of a running collector.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Counts since it began.
    pub counts: Counts,
    /// Sessions whose senders are connected.
    pub sessions: usize,
    /// Their streams.
    pub streams: usize,
    /// Viewers that are attached.
    pub viewers: usize,
    /// Bytes of packets that wait in memory.
    pub memory: u64,
    /// Open files of streams, and how many there may be.
    pub files: (usize, usize),
    /// Bytes in the output directory.
    pub disk: u64,
    /// Why nothing can be written now; senders wait.
    pub full: Option<String>,
    /// What happened since the last report.
    pub messages: Vec<String>,
}

/// A collector that listens, and does nothing until it [runs](Self::run).
#[derive(Debug)]
pub struct Collector {
    options: Options,
    runtime: Runtime,
    listeners: [TcpListener; 3],
    metrics: Option<TcpListener>,
    datagrams: UdpSocket,
    addresses: Addresses,
    found: Found,
    #[cfg(feature = "nats")]
    owner: Option<crate::nats::Owner>,
}

impl Collector {
    /// Creates the output directory, makes whole what a killed collector has left there, and listens.
    ///
    /// [`run`](Self::run) raises this process's soft limit on open files to its hard limit: each stream has two files.
    ///
    /// # Errors
    ///
    /// [`CollectError`] if the directory cannot be created or read, or an address cannot be listened on, which for others than those of the loopback
    /// interface takes a [key](Options::key).
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
        // A port that is free for connections need not be free for datagrams.
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
        // Beyond net.core.rmem_max with CAP_NET_ADMIN, else as much as that allows. Datagrams that find no room are lost, and asked for again.
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

    /// The addresses on which it listens.
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Takes and serves traces until `report`, which is called ten times a second, returns `false`. Then sessions are closed, and files
    /// completed.
    ///
    /// # Errors
    ///
    /// [`CollectError`] if the thread that writes cannot be started.
    pub fn run(self, report: impl FnMut(&Report) -> bool) -> Result<Counts, CollectError> {
        let Self { options, runtime, listeners, metrics, datagrams, addresses, found, .. } = self;
        let bounds = Bounds::of_this_process(options.files, options.open_files);
        keep_freed_memory();
        let (sender, done) = tokio::sync::mpsc::unbounded_channel();
        let storage = Storage::start(found.bytes, options.quota, options.write_rate, sender);
        let storage = storage.map_err(|error| CollectError::new("start the thread that writes", error))?;
        let mut hub = Hub::new(options.output.clone(), storage);
        hub.rotation = Rotation { quota: options.quota, ..options.rotation };
        if found.sessions > 0 {
            let Found { sessions, cut_off, .. } = found;
            hub.say(format!(
                "made {sessions} sessions of a killed collector whole; cut off {cut_off} bytes of incomplete packets"
            ));
        }
        let memory = usize::try_from(options.memory).unwrap_or(usize::MAX);
        hub.share = memory as u64 / 4;
        (hub.memory, hub.room) = (Memory::new(memory), Room::new(bounds.files));
        #[cfg(feature = "nats")]
        let brokers = brokers::Brokers::new(&options, self.owner);
        #[cfg(feature = "nats")]
        {
            hub.publishes = options.publish.is_some();
        }
        let shared = Rc::new(Shared {
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
                allows_stock: options.allows_stock,
                allows_stock_viewers: options.allows_stock_viewers,
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

/// Has glibc's allocator keep up to 8 MiB of freed memory. Otherwise it returns that of stored packets to the system, and each page of the next
/// packet is a fault. The limit is twice the size of the largest mapping that was freed (`mallopt(3)`); no page of this one is touched.
fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(4 << 20)));
}

async fn serve(
    shared: &Rc<Shared>,
    bounds: Bounds,
    (listeners, metrics, datagrams): ([TcpListener; 3], Option<TcpListener>, UdpSocket),
    mut done: UnboundedReceiver<(u64, Done)>,
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
    // No new connections; what has come is completed.
    drop(tasks);
    shared.hub.borrow_mut().close_all(Instant::now());
    if shared.hub.borrow().full.is_some() {
        shared.hub.borrow().storage().give_up();
    }
    let end = Instant::now() + END_TIME;
    while shared.hub.borrow().sessions().any(|(_, session)| !session.is_closed()) && Instant::now() < end {
        ticks.tick().await;
        shared.hub.borrow_mut().tick(Instant::now());
    }
    shared.hub.borrow().storage().give_up();
    #[cfg(feature = "nats")]
    brokers::flush(shared).await;
    report(&shared.report());
    storage.abort();
    Ok(shared.hub.borrow().counts)
}

impl Shared {
    /// The state, with what happened since the last call.
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
            disk: hub.storage().used(),
            full: hub.full.clone(),
            messages: Vec::new(),
        }
    }
}
