//! Publishes one trace over one connection.
//!
//! ```text
//!   HELLO ─▶ publishing ── METADATA, ANNOUNCE: each is stored before the next message is published
//!               │      └── packets, in the order of their stream, while there is memory for them; SYNC when they are published
//!               │      ◀── stored: the position advances
//!               ├─ the account is there, and all packets are stored ─▶ CLOSE, ACCOUNT ─▶ Done
//!               ├─ the session is not open, and all packets are stored ─▶ Settled: its sender may reconnect
//!               └─ a message is not stored, or the connection is lost ─▶ Lost: another connection begins at the position
//! ```

use super::context::PublisherContext;
use super::link::{Link, LinkError};
use crate::spool::{Item, Packet, Place, Position, Spool};
use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tracepoint_wire::nats::{Acknowledgement, OVERHEAD, Publish};
use tracepoint_wire::stream::{NO_SEQ, Route, Sync, SyncEntry};

/// Maximum number of a trace's messages that are published and not yet stored.
const MAX_IN_FLIGHT: usize = 256;
/// Interval of checks for new data.
const TICK: Duration = Duration::from_millis(20);
/// Interval of writes of the position.
const SAVE_TIME: Duration = Duration::from_secs(1);

/// The reason why publishing a trace ended.
#[derive(Debug)]
pub(super) enum End {
    /// The broker has the complete trace.
    Done,
    /// The broker has all data so far, or the collector has no more time.
    Settled,
    /// The connection is unusable.
    Lost(LinkError),
    /// The trace cannot be read.
    Failed(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// An item that is published or skipped, and not yet confirmed.
struct InFlight {
    /// `None` if there is nothing to wait for.
    stored: Option<Acknowledgement>,
    what: PublishedItem,
    _room: Option<OwnedSemaphorePermit>,
}

enum PublishedItem {
    /// Position of the stream after this item, and its counts of published and lost packets.
    Packets {
        stream: usize,
        behind: Place,
        published: u64,
        lost: u64,
    },
    Sync,
}

struct Session {
    of: Rc<PublisherContext>,
    link: Rc<Link>,
    spool: Spool,
    /// The session's number in the hub, while it is open.
    id: Option<u64>,
    in_flight: VecDeque<InFlight>,
    /// A packet that waits for memory.
    held: Option<Packet>,
    sync: Option<Sync>,
    has_hello: bool,
    has_told_size: bool,
    /// The value of the hub's news up to which everything is read; and whether an item waits for memory.
    news: Option<u64>,
    is_blocked: bool,
    saved: (Instant, Position),
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Done,
    /// There is not enough room.
    Blocked,
    Nothing,
}

/// Publishes a trace for as long as possible, then returns its spool.
pub(super) async fn run(of: Rc<PublisherContext>, link: Rc<Link>, spool: Spool) -> (Spool, End) {
    let saved = (Instant::now(), spool.position.clone());
    let mut session = Session {
        of,
        link,
        spool,
        id: None,
        in_flight: VecDeque::new(),
        held: None,
        sync: None,
        has_hello: false,
        has_told_size: false,
        news: None,
        is_blocked: false,
        saved,
    };
    let end = match Box::pin(session.follow()).await {
        Ok(end) | Err(end) => end,
    };
    if !matches!(end, End::Done) {
        session.save();
    }
    (session.spool, end)
}

impl Session {
    async fn follow(&mut self) -> Result<End, End> {
        self.spool.rewind()?;
        loop {
            self.reap(Duration::ZERO).await?;
            let is_open = self.is_open();
            let news = self.id.and_then(|id| self.of.shared.hub.borrow().published_news(id));
            if !is_open || self.is_blocked || news != self.news {
                let step = self.step().await?;
                self.is_blocked = step == Step::Blocked;
                if step == Step::Done {
                    // More may have arrived since `news` was read.
                    self.news = None;
                    continue;
                }
                self.news = news;
            }
            if self.in_flight.is_empty() && !self.is_blocked {
                if self.spool.has_account() && self.spool.has_begun() {
                    self.close().await?;
                    return Ok(End::Done);
                }
                if !is_open {
                    return Ok(End::Settled);
                }
            }
            if self.of.status.is_over() {
                return Ok(End::Settled);
            }
            if self.saved.0.elapsed() >= SAVE_TIME {
                self.save();
            }
            self.reap(TICK).await?;
        }
    }

    /// Returns whether the sender may send more. To be called before the stored data is checked.
    fn is_open(&mut self) -> bool {
        let hub = self.of.shared.hub.borrow();
        if self.id.is_none_or(|id| hub.published_news(id).is_none()) {
            let mut open = hub.published_sessions().into_iter();
            self.id = open.find(|(_, root)| *root == self.spool.root).map(|(id, _)| id);
        }
        self.id.is_some()
    }

    /// Publishes the next message, if there is one and room for it.
    async fn step(&mut self) -> Result<Step, End> {
        self.spool.refresh()?;
        if let Some((message, end)) = self.spool.pop_control() {
            self.greet().await?;
            self.publish_now(message).await?;
            self.spool.position.log = end;
            return Ok(Step::Done);
        }
        if !self.spool.has_begun() {
            return Ok(Step::Nothing);
        }
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return Ok(Step::Blocked);
        }
        if self.sync.is_none() {
            self.sync = self.id.and_then(|id| self.of.shared.hub.borrow_mut().take_sync(id));
        }
        let item = match self.held.take() {
            Some(packet) => Item::Packet(packet),
            None => match self.spool.next()? {
                Some(item) => item,
                None => return self.synchronise().await.map(|()| Step::Nothing),
            },
        };
        match item {
            Item::Removed { stream, behind, packets } => {
                self.of
                    .say(format!("{packets} packets of `{}` were removed before they were published", self.spool.name));
                self.pass(stream, behind, packets);
                Ok(Step::Done)
            }
            Item::Packet(packet) => self.packet(packet).await,
        }
    }

    /// Publishes the trace's HELLO before anything else, even if the broker has it already: collectors look for it.
    async fn greet(&mut self) -> Result<(), End> {
        if self.has_hello {
            return Ok(());
        }
        self.publish_now(self.spool.publication.hello()).await?;
        self.has_hello = true;
        Ok(())
    }

    /// Skips packets that are lost to the broker.
    fn pass(&mut self, stream: usize, behind: Place, lost: u64) {
        let what = PublishedItem::Packets { stream, behind, published: 0, lost };
        self.in_flight.push_back(InFlight { stored: None, what, _room: None });
    }

    async fn packet(&mut self, packet: Packet) -> Result<Step, End> {
        let (size, most) = (packet.size, self.link.stream.max_payload);
        if size.saturating_add(OVERHEAD) > most {
            if !std::mem::replace(&mut self.has_told_size, true) {
                self.of.say(format!(
                    "a packet of `{}` has {size} bytes, and the broker takes messages of at most {most}: such packets are not published; set \
                     `max_payload` of the server to at least {}",
                    self.spool.name,
                    size.saturating_add(OVERHEAD)
                ));
            }
            let behind = self.spool.pass_over(packet.stream, packet.previous);
            self.pass(packet.stream, behind, 1);
            return Ok(Step::Done);
        }
        let Some(room) = self.of.room(size) else {
            self.held = Some(packet);
            return Ok(Step::Blocked);
        };
        self.greet().await?;
        let Packet { stream, behind, previous, file, offset, .. } = packet;
        let read = spawn_blocking(move || {
            let mut bytes = vec![0; size];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        });
        let bytes = read.await.map_err(io::Error::from)??;
        let route = Route { handle: stream as u64, seq: behind.last, prev_seq: previous, circuit_id: 0 };
        let (key, name) = self.spool.stream(stream);
        let message = self.spool.publication.packet(key, name, route, &bytes);
        let stored = Some(self.publish(message).await?);
        let what = PublishedItem::Packets { stream, behind, published: 1, lost: 0 };
        self.in_flight.push_back(InFlight { stored, what, _room: Some(room) });
        Ok(Step::Done)
    }

    /// Publishes the last synchronisation point, once everything stored before it is published.
    async fn synchronise(&mut self) -> Result<(), End> {
        let Some(Sync { number, time, entries, .. }) = self.sync.take() else { return Ok(()) };
        self.greet().await?;
        // Other collectors must not wait for packets that were sent and then given up here.
        let entry = |entry: SyncEntry| {
            let last = self.spool.last(entry.handle)?;
            let last = if last == NO_SEQ { last } else { entry.last.min(last) };
            Some(SyncEntry { last, ..entry })
        };
        let entries: Vec<_> = entries.into_iter().filter_map(entry).collect();
        for message in self.spool.publication.sync(number, time, &entries) {
            let stored = Some(self.publish(message).await?);
            self.in_flight.push_back(InFlight { stored, what: PublishedItem::Sync, _room: None });
        }
        Ok(())
    }

    async fn publish(&self, message: Publish) -> Result<Acknowledgement, End> {
        self.link.stream.publish(message).await.map_err(|error| End::Lost(error.into()))
    }

    /// Publishes a message and waits until it is stored.
    async fn publish_now(&self, message: Publish) -> Result<(), End> {
        let mut stored = self.publish(message).await?;
        loop {
            self.link.check().map_err(End::Lost)?;
            if let Ok(stored) = timeout(TICK, &mut stored).await {
                return stored.map_err(|error| End::Lost(error.into()));
            }
            if self.of.status.is_over() {
                return Err(End::Settled);
            }
        }
    }

    /// Removes confirmed items; waits at most `time` for the first.
    async fn reap(&mut self, mut time: Duration) -> Result<(), End> {
        self.link.check().map_err(End::Lost)?;
        if self.in_flight.is_empty() {
            sleep(time).await;
        }
        while let Some(first) = self.in_flight.front_mut() {
            if let Some(stored) = &mut first.stored {
                match timeout(time, stored).await {
                    Ok(stored) => stored.map_err(|error| End::Lost(error.into()))?,
                    Err(_) => break,
                }
            }
            time = Duration::ZERO;
            let Some(InFlight { what, .. }) = self.in_flight.pop_front() else { break };
            if let PublishedItem::Packets { stream, behind, published, lost } = what {
                self.spool.position.streams[stream] = behind;
                let counts = &mut self.of.shared.hub.borrow_mut().counts;
                counts.published += published;
                counts.unpublishable += lost;
            }
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), End> {
        self.greet().await?;
        for message in self.spool.end() {
            self.publish_now(message).await?;
        }
        Position::done(&self.spool.root)?;
        self.of.shared.hub.borrow().storage.resized(0, self.spool.log_size());
        Ok(())
    }

    fn save(&mut self) {
        self.saved.0 = Instant::now();
        self.of.count(&mut self.spool);
        if self.saved.1 == self.spool.position {
            return;
        }
        match self.spool.position.write(&self.spool.root) {
            Ok(()) => self.saved.1 = self.spool.position.clone(),
            // Without it, more is published again. A removed directory needs none.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.of.say(format!("cannot write how far `{}` is published: {error}", self.spool.name));
            }
            Err(_) => {}
        }
    }
}
