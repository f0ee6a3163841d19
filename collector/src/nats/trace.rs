//! Collects one trace, for as long as this collector has its lease.
//!
//! ```text
//!   opening: the beginning of the trace is read; in a new epoch the next chunk is made; the hub opens the session
//!     ▼
//!   collecting ── message ─▶ hub; packets are remembered until they are stored
//!     │      │── each quarter of the lease, each second if there is news: commit ─▶ acknowledge
//!     │      └── the lease is in doubt: nothing is taken until a commit succeeds
//!     ├─ the account is stored ─▶ commit Done ─▶ the broker forgets the trace
//!     ├─ nothing comes, or the collector ends ─▶ commit Released ─▶ the chunk is completed
//!     └─ another one has the lease ─▶ what is behind the position at which this epoch ended is cut off
//! ```

use super::account::AccountText;
use super::broker::{Broker, Failed};
use super::former;
use super::lease::{Committed, Held, State};
use super::replay::Beginning;
use super::search::Collecting;
use crate::hub::position::{Position, session_name};
use crate::stream_control::StreamControl;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{self, consumer::pull};
use futures_util::StreamExt;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use tracepoint_reader::net::nats::{Message, Token, TraceSubject, hex, with_handle};
use tracepoint_reader::net::stream::{
    Announced, Close, ClosedStream, FRAME_HEADER, FrameHeader, Sync, SyncEntry, ToCollector, ToSender,
};

/// The time between two looks at what is stored.
const TICK: Duration = Duration::from_millis(25);
/// The messages that are fetched at a time, and how long they are waited for.
const BATCH: usize = 32;
const FETCH_TIME: Duration = Duration::from_millis(500);
/// The pause before something that failed is tried again.
const AGAIN: Duration = Duration::from_millis(250);
/// The pause between two commits, while there is news.
const COMMIT_TIME: Duration = Duration::from_secs(1);
/// The pause between two purges of stored packets.
const PURGE_TIME: Duration = Duration::from_secs(5);
/// A sender is gone that has published nothing for so long.
const SILENCE: Duration = Duration::from_secs(60);
/// How long files are completed, when a trace ends here.
const END_TIME: Duration = Duration::from_secs(10);

/// A message that is not dealt with.
struct Waiting {
    sequence: u64,
    what: What,
    acker: Acker,
}

/// When a message is dealt with.
enum What {
    /// At once.
    Nothing,
    /// When this packet of the stream with this handle is stored or given up.
    Packet { handle: u64, seq: u64 },
    /// When the trace is complete.
    End,
}

/// How collecting a trace ends.
enum End {
    Done,
    Released,
    Lost(Position),
}

/// A trace that this collector has.
struct Trace {
    of: Rc<Collecting>,
    broker: Broker,
    subject: TraceSubject,
    held: Held,
    control: StreamControl,
    session: u64,
    name: String,
    uuid: [u8; 16],
    root: PathBuf,
    /// The handles of streams in the hub, by the numbers that the sender gives them.
    handles: BTreeMap<u64, u64>,
    waiting: VecDeque<Waiting>,
    /// The last message that has come, and the last one that is dealt with.
    received: u64,
    dealt: u64,
    acker: Option<Acker>,
    /// It is stored when all streams are.
    account: AccountText,
    /// Messages that the broker has behind the last one that has come.
    pending: u64,
    heard: Instant,
    committed: Instant,
    purged: (Instant, u64),
    /// Why the last commit is not known to have succeeded.
    trouble: Option<String>,
}

/// Collects a trace until it ends here.
pub(super) async fn collect(of: Rc<Collecting>, broker: Broker, subject: TraceSubject, held: Held) {
    let key = held.key.clone();
    let opened = match Trace::open(Rc::clone(&of), broker, subject, held).await {
        Ok(Some(trace)) => trace.run().await,
        Ok(None) => Ok(()),
        Err(why) => Err(why),
    };
    if let Err(why) = opened {
        of.say(format!("the trace `{key}` of the broker: {why}"));
        // The lease expires, unless another attempt succeeds before.
        sleep(of.settings.lease / 2).await;
    }
    of.status.unstored.borrow_mut().remove(&key);
}

fn text(failed: &Failed) -> String {
    failed.to_string()
}

impl Trace {
    async fn open(
        of: Rc<Collecting>,
        broker: Broker,
        subject: TraceSubject,
        held: Held,
    ) -> Result<Option<Self>, String> {
        let Some(beginning) = Beginning::read(&broker, &subject).await.map_err(|error| text(&error))? else {
            return Ok(None);
        };
        let hello = beginning.hello(&subject).ok_or("its beginning is malformed, or is that of another trace")?;
        let lease = &held.lease;
        let (former, metadata) =
            (Position { chunk: lease.position.chunk - 1, ..lease.position.clone() }, beginning.metadata());
        // Without metadata nothing was stored by another one.
        if former.chunk > 0 && !metadata.is_empty() {
            let made = of.shared.hub.borrow().take_over(&hello, &former, &metadata);
            made.map_err(|error| format!("cannot begin chunk {}: {error}", lease.position.chunk))?;
        }
        let mut control = StreamControl::shared(of.shared.offer.clone());
        let (name, uuid) = (session_name(&hello), hello.trace);
        feed(&of, &mut control, ToCollector::Hello(hello)).await?;
        let session = control.session().ok_or("it was not opened")?;
        let root = of.shared.hub.borrow().root(session).ok_or("it has no directory")?;
        former::mark(&root, &held.key, lease.epoch, &name)
            .map_err(|error| format!("cannot write its mark: {error}"))?;
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
            pending: 0,
            heard: now,
            committed: held.renewed,
            purged: (now, sequence),
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

    async fn run(mut self) -> Result<(), String> {
        let end = self.collect().await;
        self.finish(end).await;
        Ok(())
    }

    fn consumer_name(&self) -> String {
        format!("tracepoint-{}-{}", hex(&self.uuid), self.held.lease.epoch)
    }

    /// Fetches messages until the trace ends here.
    async fn collect(&mut self) -> End {
        loop {
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
            loop {
                match self.fetch(&consumer).await {
                    Ok(None) => {}
                    Ok(Some(end)) => return end,
                    // The consumer may be gone with its server.
                    Err(_) => break,
                }
            }
            if let Some(end) = self.pass(AGAIN).await {
                return end;
            }
        }
    }

    /// Lets time pass.
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

    /// Fetches some messages, and hands them to the hub.
    async fn fetch(&mut self, consumer: &jetstream::consumer::Consumer<pull::Config>) -> Result<Option<End>, ()> {
        if self.control.is_held() || self.held.is_in_doubt(self.of.settings.lease) {
            return Ok(self.pass(TICK).await);
        }
        let mut batch = consumer.batch().max_messages(BATCH).expires(FETCH_TIME).messages().await.map_err(drop)?;
        let began = Instant::now();
        loop {
            match timeout(TICK, batch.next()).await {
                Ok(Some(Ok(message))) => {
                    if let Some(end) = self.message(message).await {
                        return Ok(Some(end));
                    }
                }
                Ok(Some(Err(_))) => return Err(()),
                Ok(None) => break,
                Err(_) => {
                    if let Some(end) = self.tick().await {
                        return Ok(Some(end));
                    }
                    // An answer that is lost with the connection does not come.
                    if began.elapsed() > FETCH_TIME * 4 {
                        return Err(());
                    }
                }
            }
        }
        Ok(self.tick().await)
    }

    /// Takes a message. The memory for it may have to be waited for, meanwhile the lease is renewed.
    async fn message(&mut self, message: jetstream::Message) -> Option<End> {
        let Ok((sequence, pending)) = message.info().map(|info| (info.stream_sequence, info.pending)) else {
            return None;
        };
        (self.heard, self.pending) = (Instant::now(), pending);
        if sequence <= self.received {
            return None;
        }
        let (message, acker) = message.split();
        let size = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
        let what = if size > self.of.shared.largest {
            self.of
                .say(format!("a message of `{}` has {size} bytes, more than half of the memory (--memory)", self.name));
            self.damaged()
        } else {
            let shared = Rc::clone(&self.of.shared);
            let mut memory = std::pin::pin!(shared.memory(size));
            let memory = loop {
                match timeout(TICK, &mut memory).await {
                    Ok(memory) => break memory,
                    Err(_) => {
                        if let Some(end) = self.tick().await {
                            return Some(end);
                        }
                    }
                }
            };
            match TraceSubject::parse(&message.subject).map(|(_, token)| token) {
                Some(Token::Hello) => What::Nothing,
                Some(token) => match Message::decode(&token, &message.payload) {
                    Ok(Message::Packet(route, wire)) => self.packet(route.handle, route.seq, wire, memory),
                    Ok(Message::Frames(frames)) => {
                        drop(memory);
                        let mut what = What::Nothing;
                        for frame in frames {
                            if matches!(frame, ToCollector::Close(_) | ToCollector::Account(..)) {
                                what = What::End;
                            }
                            self.frame(frame).await;
                        }
                        what
                    }
                    _ => self.damaged(),
                },
                None => self.damaged(),
            }
        };
        self.received = sequence;
        self.waiting.push_back(Waiting { sequence, what, acker });
        None
    }

    fn damaged(&self) -> What {
        self.of.shared.hub.borrow_mut().counts.damaged += 1;
        What::Nothing
    }

    fn packet(&self, number: u64, seq: u64, wire: &[u8], memory: Option<tokio::sync::OwnedSemaphorePermit>) -> What {
        let Some(handle) = self.handles.get(&number).copied() else { return self.damaged() };
        let hub = &mut self.of.shared.hub.borrow_mut();
        // What is stored comes again after a collector was killed, or was published twice.
        if !hub.wants(handle, seq) {
            return What::Packet { handle, seq };
        }
        if hub.wire_packet(self.session, with_handle(wire, handle), memory, Instant::now()) {
            What::Packet { handle, seq }
        } else {
            What::Nothing
        }
    }

    /// Hands a message to the hub, with its handles. One that does not fit is left out.
    async fn frame(&mut self, frame: ToCollector<'_>) {
        let frame = match frame {
            ToCollector::Announce(announce) => {
                let number = u64::from(announce.request);
                if let Ok(Some(announced)) = feed(&self.of, &mut self.control, ToCollector::Announce(announce)).await {
                    self.handles.insert(number, announced.handle);
                }
                return;
            }
            ToCollector::Sync(sync) => {
                let entries = sync
                    .entries
                    .iter()
                    .filter_map(|entry| Some(SyncEntry { handle: *self.handles.get(&entry.handle)?, ..*entry }));
                let entries = entries.collect();
                ToCollector::Sync(Sync { entries, ..sync })
            }
            ToCollector::Close(close) => {
                let entries = close
                    .entries
                    .iter()
                    .filter_map(|entry| Some(ClosedStream { handle: *self.handles.get(&entry.handle)?, ..*entry }));
                let entries = entries.collect();
                // The sender publishes this when the broker has everything else.
                self.control.all_has_come();
                ToCollector::Close(Close { entries, ..close })
            }
            ToCollector::Account(piece, whole) => {
                self.account.add(&piece, whole);
                return;
            }
            frame @ ToCollector::Metadata(_) => frame,
            _ => {
                self.damaged();
                return;
            }
        };
        if feed(&self.of, &mut self.control, frame).await.is_err() {
            self.damaged();
        }
    }

    /// Looks at what is stored, and commits it.
    async fn tick(&mut self) -> Option<End> {
        let now = Instant::now();
        let ticked = self.control.tick(&mut self.of.shared.hub.borrow_mut(), now, &mut Vec::new());
        if let Err((_, why)) = ticked {
            self.of.say(format!("`{}`: {why}", self.name));
            return Some(End::Released);
        }
        if self.control.has_ended() {
            return Some(End::Done);
        }
        if self.account.is_whole() && self.of.shared.hub.borrow_mut().is_all_closed(self.session) {
            for frame in self.account.take().frames() {
                if let Err(why) = feed(&self.of, &mut self.control, frame).await {
                    self.of.say(format!("`{}`: {why}", self.name));
                }
            }
        }
        self.pop_dealt();
        self.of.status.unstored.borrow_mut().insert(self.held.key.clone(), self.pending + self.waiting.len() as u64);
        let is_silent = self.waiting.is_empty() && self.heard.elapsed() >= SILENCE;
        if is_silent || self.of.status.is_ending.get() {
            return Some(End::Released);
        }
        let pause = if self.dealt > self.held.lease.sequence { COMMIT_TIME } else { self.of.settings.lease / 4 };
        if self.committed.elapsed() < pause.min(self.of.settings.lease / 4) {
            return None;
        }
        self.committed = now;
        match self.commit(State::Held).await {
            Committed::Lost(at) => Some(End::Lost(at)),
            Committed::Yes => {
                self.trouble = None;
                self.purge().await;
                None
            }
            Committed::Unknown(why) => {
                // Once, and not each time.
                if why.is_some() && self.trouble != why {
                    self.of.say(format!("`{}`: {}", self.name, why.as_deref().unwrap_or_default()));
                    self.trouble = why;
                }
                None
            }
        }
    }

    /// Takes the messages off the queue that are dealt with.
    fn pop_dealt(&mut self) {
        let hub = self.of.shared.hub.borrow();
        while let Some(first) = self.waiting.front() {
            let is_dealt = match first.what {
                What::Nothing => true,
                What::Packet { handle, seq } => hub.next_stored(handle).is_none_or(|next| next > seq),
                What::End => false,
            };
            if !is_dealt {
                break;
            }
            if let Some(Waiting { sequence, acker, .. }) = self.waiting.pop_front() {
                (self.dealt, self.acker) = (sequence, Some(acker));
            }
        }
    }

    async fn commit(&mut self, state: State) -> Committed {
        let position = self.of.shared.hub.borrow_mut().position(self.session);
        let position = position.unwrap_or_else(|| self.held.lease.position.clone());
        let (acker, sequence) = (self.acker.take(), self.dealt);
        let committed = self.held.commit(&self.broker, state, sequence, position).await;
        match (&committed, acker) {
            // If that is lost, the next one acknowledges this message, too.
            (Committed::Yes, Some(acker)) => drop(acker.ack().await),
            (_, acker) => self.acker = acker,
        }
        committed
    }

    /// Has the broker forget the packets that are stored.
    async fn purge(&mut self) {
        let (at, upto) = self.purged;
        let sequence = self.held.lease.sequence;
        if at.elapsed() < PURGE_TIME || sequence <= upto {
            return;
        }
        self.purged = (Instant::now(), sequence);
        let names = self.of.shared.hub.borrow().stream_names(self.session);
        let tokens = names.into_iter().map(Token::Stream).chain([Token::Sync]);
        for subject in tokens.map(|token| self.subject.subject(&token)) {
            // What stays is removed at the end.
            let _ = self.broker.purge_below(&subject, sequence + 1).await;
        }
    }

    /// Ends the trace here.
    async fn finish(mut self, end: End) {
        let at = match end {
            End::Lost(at) => {
                self.of.say(format!("another collector goes on with `{}`", self.name));
                Some(at)
            }
            End::Released => {
                self.until(END_TIME, |trace| {
                    trace.pop_dealt();
                    trace.waiting.is_empty()
                })
                .await;
                match self.last_commit(State::Released).await {
                    Committed::Lost(at) => Some(at),
                    // If it has not come through, the lease expires, and the next collector here looks at it.
                    Committed::Unknown(_) => None,
                    Committed::Yes => Some(self.held.lease.position.clone()),
                }
            }
            End::Done => {
                // Nothing is to come, so nothing waits either.
                self.dealt = self.received;
                self.close().await;
                match self.last_commit(State::Done).await {
                    Committed::Lost(at) => Some(at),
                    Committed::Unknown(_) => None,
                    Committed::Yes => {
                        former::unmark(&self.root);
                        if let Err(error) = self.broker.purge_all(&self.subject).await {
                            self.of.say(error.to_string());
                        }
                        let _ = self.broker.stream.delete_consumer(&self.consumer_name()).await;
                        return;
                    }
                }
            }
        };
        self.close().await;
        let _ = self.broker.stream.delete_consumer(&self.consumer_name()).await;
        if let Some(at) = at {
            if let Some(message) = former::end(&self.root, &self.name, &at) {
                self.of.say(message);
            }
        }
    }

    /// Commits until it is known what became of it, or the lease is over.
    async fn last_commit(&mut self, state: State) -> Committed {
        loop {
            let committed = self.commit(state).await;
            if !matches!(committed, Committed::Unknown(_)) || self.held.is_in_doubt(self.of.settings.lease) {
                return committed;
            }
            sleep(AGAIN).await;
        }
    }

    /// Closes the session, and waits until its files are complete.
    async fn close(&mut self) {
        {
            let hub = &mut self.of.shared.hub.borrow_mut();
            self.control.ended(hub, Instant::now());
            hub.close_session(self.session, Instant::now());
        }
        self.until(END_TIME, |trace| {
            let hub = trace.of.shared.hub.borrow();
            hub.session(trace.session).is_none_or(crate::hub::Session::is_closed)
        })
        .await;
    }

    async fn until(&mut self, time: Duration, mut is_so: impl FnMut(&mut Self) -> bool) {
        let until = Instant::now() + time;
        while !is_so(self) && Instant::now() < until {
            sleep(TICK).await;
        }
    }
}

/// Hands a message to the hub; the handle of a stream that is announced by it.
async fn feed(
    of: &Collecting,
    control: &mut StreamControl,
    message: ToCollector<'_>,
) -> Result<Option<Announced>, String> {
    let memory = match &message {
        ToCollector::Metadata(piece) => of.shared.memory(piece.bytes.len() as u32).await,
        _ => None,
    };
    let random = crate::server::random().map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    let hub = &mut of.shared.hub.borrow_mut();
    control.message(hub, message, memory, random, Instant::now(), &mut out).map_err(|(_, why)| why)?;
    let header = FrameHeader::decode(&out).and_then(Result::ok);
    let said = header.and_then(|header| ToSender::decode(header.kind, &out[FRAME_HEADER..]).ok());
    Ok(match said {
        Some(ToSender::Announced(announced)) => Some(announced),
        _ => None,
    })
}
