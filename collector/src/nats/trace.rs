//! Collects one trace while this collector has its lease.
//!
//! ```text
//!   opening: the beginning of the trace is read; in a new epoch the next chunk is made; the hub opens the session
//!     ▼
//!   collecting ── message ─▶ hub; packets are remembered until they are stored
//!     │      │── every quarter of the lease time, every second with progress: commit ─▶ acknowledge
//!     │      └── the lease is in doubt: no messages are fetched until a commit succeeds
//!     ├─ the account is stored ─▶ commit Done ─▶ the trace is purged from the broker
//!     ├─ no messages arrive, or the collector ends ─▶ commit Released ─▶ the chunk is completed
//!     └─ another collector has the lease ─▶ data beyond the end of this epoch is removed
//! ```

mod ending;
mod incoming;
mod progress;

use super::account::AccountText;
use super::broker::{Broker, BrokerError};
use super::context::CollectorContext;
use super::lease::OwnedLease;
use super::preamble::Preamble;
use super::stale;
use crate::hub::position::{Position, session_name};
use crate::stream_control::StreamControl;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{self, consumer::pull};
use futures_util::StreamExt;
use incoming::feed;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use tracepoint_wire::nats::{TraceSubject, hex};
use tracepoint_wire::stream::ToCollector;

/// Interval at which stored data is checked.
const TICK: Duration = Duration::from_millis(25);
/// Number of messages per fetch, and the time to wait for them.
const BATCH: usize = 32;
const FETCH_TIME: Duration = Duration::from_millis(500);
/// Pause before a failed request is retried.
const AGAIN: Duration = Duration::from_millis(250);

/// A message that is not processed yet.
struct PendingMessage {
    sequence: u64,
    what: AckPoint,
    acker: Acker,
}

/// Condition under which a message is processed.
enum AckPoint {
    /// Immediately.
    Nothing,
    /// When this packet of the stream with this handle is stored or given up.
    Packet { handle: u64, seq: u64 },
    /// When the trace is complete.
    End,
}

/// The consumer no longer answers.
struct ConsumerGone;

/// The reason why collecting a trace ended.
enum End {
    Done,
    Released,
    Lost(Position),
}

struct Trace {
    of: Rc<CollectorContext>,
    broker: Broker,
    subject: TraceSubject,
    held: OwnedLease,
    control: StreamControl,
    session: u64,
    name: String,
    uuid: [u8; 16],
    root: PathBuf,
    /// Stream handles in the hub, by the sender's stream numbers.
    handles: BTreeMap<u64, u64>,
    waiting: VecDeque<PendingMessage>,
    /// The last message received, and the last one processed.
    received: u64,
    dealt: u64,
    acker: Option<Acker>,
    /// Stored once all streams are.
    account: AccountText,
    /// Number of the current consumer. The first one is random, because an earlier process may have had consumers in the same epoch.
    consumers: u32,
    /// When a message was last processed, or none waited.
    progressed: Instant,
    /// When messages were last fetched again, and how often that was because some were missing at the end.
    fetched_again: Option<Instant>,
    fetched_at_end: u32,
    /// Set when data of an unannounced stream has arrived.
    misses_stream: bool,
    /// Set once the sender has ended the trace.
    is_closed: bool,
    /// Consumer sequence of the last message delivered by the current consumer.
    delivered: u64,
    /// Number of messages at the broker after the last one received.
    pending: u64,
    heard: Instant,
    committed: Instant,
    purged: (Instant, u64),
    /// Set when the current consumer may skip messages, because stored packets were purged.
    is_stale: bool,
    /// The error of the last commit whose result is unknown.
    trouble: Option<String>,
}

/// Collects a trace until it ends here.
pub(super) async fn collect(of: Rc<CollectorContext>, broker: Broker, subject: TraceSubject, held: OwnedLease) {
    let key = held.key.clone();
    match Trace::open(Rc::clone(&of), broker, subject, held).await {
        Ok(Some(trace)) => Box::pin(trace.run()).await,
        Ok(None) => {}
        Err(why) => {
            of.say(format!("the trace `{key}` of the broker: {why}"));
            // The lease expires, unless another attempt succeeds before.
            sleep(of.settings.lease / 2).await;
        }
    }
    of.status.unstored.borrow_mut().remove(&key);
}

fn text(failed: &BrokerError) -> String {
    failed.to_string()
}

impl Trace {
    async fn open(
        of: Rc<CollectorContext>,
        broker: Broker,
        subject: TraceSubject,
        held: OwnedLease,
    ) -> Result<Option<Self>, String> {
        let Some(beginning) = Preamble::read(&broker, &subject).await.map_err(|error| text(&error))? else {
            return Ok(None);
        };
        let hello = beginning.hello(&subject).ok_or("its beginning is malformed, or is that of another trace")?;
        let lease = &held.lease;
        let (former, metadata) =
            (Position { chunk: lease.position.chunk - 1, ..lease.position.clone() }, beginning.metadata());
        // Without metadata, no other collector has stored anything.
        if former.chunk > 0 && !metadata.is_empty() {
            let made = of.shared.hub.borrow().take_over(&hello, &former, &metadata);
            made.map_err(|error| format!("cannot begin chunk {}: {error}", lease.position.chunk))?;
        }
        let mut control = StreamControl::shared(of.shared.offer.clone());
        let (name, uuid) = (session_name(&hello), hello.trace);
        feed(&of, &mut control, ToCollector::Hello(hello)).await?;
        let session = control.session().ok_or("it was not opened")?;
        let root = of.shared.hub.borrow().root(session).ok_or("it has no directory")?;
        stale::mark(&root, &held.key, lease.epoch, &name).map_err(|error| format!("cannot write its mark: {error}"))?;
        let random = crate::shared::random().map_err(|error| error.to_string())?;
        let now = Instant::now();
        let sequence = lease.sequence;
        let mut trace = Self {
            of,
            broker,
            subject,
            control,
            session,
            name,
            uuid,
            root,
            handles: BTreeMap::new(),
            waiting: VecDeque::new(),
            received: sequence,
            dealt: sequence,
            acker: None,
            account: AccountText::default(),
            consumers: u32::from_be_bytes([random[0], random[1], random[2], random[3]]),
            progressed: now,
            fetched_again: None,
            fetched_at_end: 0,
            misses_stream: false,
            is_closed: false,
            delivered: 0,
            pending: 0,
            heard: now,
            committed: held.renewed,
            purged: (now, sequence),
            is_stale: false,
            trouble: None,
            held,
        };
        for frame in beginning.frames() {
            if matches!(frame, ToCollector::Metadata(_) | ToCollector::Announce(_)) {
                trace.frame(frame).await;
            }
        }
        Ok(Some(trace))
    }

    async fn run(mut self) {
        let end = Box::pin(self.collect()).await;
        self.finish(end).await;
    }

    /// Reads streams announced at the beginning of the trace again.
    async fn read_again(&mut self) {
        // If this fails, packets of the stream cause another attempt.
        let Ok(Some(beginning)) = Preamble::read(&self.broker, &self.subject).await else { return };
        for frame in beginning.frames() {
            if matches!(frame, ToCollector::Metadata(_) | ToCollector::Announce(_)) {
                self.frame(frame).await;
            }
        }
    }

    /// Returns a unique consumer name: the broker may still execute an earlier request that was not answered in time.
    fn consumer_name(&self) -> String {
        format!("tracepoint-{}-{}-{:08x}", hex(&self.uuid), self.held.lease.epoch, self.consumers)
    }

    /// Fetches messages until the trace ends here.
    async fn collect(&mut self) -> End {
        loop {
            let _ = self.broker.stream.delete_consumer(&self.consumer_name()).await;
            if std::mem::take(&mut self.misses_stream) {
                self.read_again().await;
            }
            self.consumers = self.consumers.wrapping_add(1);
            let consumer = match self.broker.consumer(&self.subject, &self.consumer_name(), self.received + 1).await {
                Ok(consumer) => consumer,
                Err(error) => {
                    self.of.say(error.to_string());
                    if let Some(end) = self.pass(AGAIN).await {
                        return end;
                    }
                    continue;
                }
            };
            (self.delivered, self.is_stale) = (0, false);
            loop {
                match self.fetch(&consumer).await {
                    Ok(None) => {}
                    Ok(Some(end)) => return end,
                    // The consumer may have disappeared with its server.
                    Err(ConsumerGone) => break,
                }
            }
            if self.is_stale {
                continue;
            }
            if let Some(end) = self.pass(AGAIN).await {
                return end;
            }
        }
    }

    /// Waits, while it keeps committing.
    async fn pass(&mut self, time: Duration) -> Option<End> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            sleep(TICK).await;
            if let Some(end) = self.tick().await {
                return Some(end);
            }
        }
        None
    }

    /// Fetches some messages and hands them to the hub.
    async fn fetch(
        &mut self,
        consumer: &jetstream::consumer::Consumer<pull::Config>,
    ) -> Result<Option<End>, ConsumerGone> {
        if self.is_stale {
            return Err(ConsumerGone);
        }
        if self.control.is_held() || self.held.is_in_doubt(self.of.settings.lease) {
            return Ok(self.pass(TICK).await);
        }
        let mut batch =
            consumer.batch().max_messages(BATCH).expires(FETCH_TIME).messages().await.map_err(|_| ConsumerGone)?;
        let began = Instant::now();
        loop {
            if self.is_stale {
                return Err(ConsumerGone);
            }
            match timeout(TICK, batch.next()).await {
                Ok(Some(Ok(message))) => {
                    // A message lost with a connection would be redelivered later, after its successors.
                    let number = message.info().map_or(0, |info| info.consumer_sequence);
                    if number != self.delivered + 1 {
                        return Err(ConsumerGone);
                    }
                    self.delivered = number;
                    if let Some(end) = self.message(message).await {
                        return Ok(Some(end));
                    }
                    if self.goes_back() {
                        return Err(ConsumerGone);
                    }
                }
                Ok(Some(Err(_))) => return Err(ConsumerGone),
                Ok(None) => break,
                Err(_) => {
                    if let Some(end) = self.tick().await {
                        return Ok(Some(end));
                    }
                    // An answer that was lost with the connection never arrives.
                    if began.elapsed() > FETCH_TIME * 4 {
                        return Err(ConsumerGone);
                    }
                }
            }
        }
        Ok(self.tick().await)
    }
}
