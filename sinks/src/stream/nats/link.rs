//! The connection to the broker: a thread with the event loop that `async-nats` requires, and the channels to and from it.
//!
//! ```text
//!   session ── Publish ──▶ thread: publishes in this order, waits for the acknowledgements in this order
//!   session ◀── Said ───── Stored, for each one; Lost: the broker refuses one or cannot be reached, and the thread ends
//! ```
//!
//! A lost connection ends the thread, and the worker opens another one.

use crate::own_thread;
use crate::stream::session::ConnectionError;
use fileguard::{Source, Waker};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracepoint_wire::nats::{Acknowledgement, Broker, JetStream, JetStreamError, Publish};

/// The thread's name, as shown by `top -H`.
const NAME: &str = "tracepoint-nats";

/// A message of the thread.
#[derive(Debug)]
enum LinkEvent {
    Ready(Server),
    /// The next message is stored.
    Stored,
    Lost(String),
}

/// The connected server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) max_payload: usize,
}

/// A connection; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Link {
    publish: UnboundedSender<Publish>,
    said: Receiver<LinkEvent>,
    waker: Arc<Waker>,
    source: Option<Source>,
    pub(super) server: Server,
}

/// The thread's end of the channel.
#[derive(Clone)]
struct EventSender {
    said: Sender<LinkEvent>,
    waker: Arc<Waker>,
}

impl EventSender {
    fn say(&self, said: LinkEvent) {
        // Fails if the session has ended, which needs no messages.
        let _ = self.said.send(said);
        self.waker.wake();
    }
}

impl Link {
    /// Connects, and finds or creates the broker's stream.
    pub(super) fn open(broker: &Broker, deadline: Instant) -> Result<Self, ConnectionError> {
        let waker = Arc::new(Waker::new()?);
        let (sender, said) = channel();
        let (publish, messages) = unbounded_channel();
        let back = EventSender { said: sender, waker: Arc::clone(&waker) };
        let broker = broker.clone();
        let time = deadline.saturating_duration_since(Instant::now());
        own_thread::spawn(NAME, move || run(&broker, time, messages, &back))?;
        // The thread answers before the deadline.
        match said.recv() {
            Ok(LinkEvent::Ready(server)) => Ok(Self { publish, said, waker, source: None, server }),
            Ok(LinkEvent::Lost(why)) => Err(ConnectionError::Temporary(io::Error::other(why))),
            _ => Err(ConnectionError::Temporary(io::Error::other("the thread of the connection has ended"))),
        }
    }

    /// Queues a message for publishing.
    pub(super) fn publish(&self, message: Publish) {
        // If the thread has ended, it has reported the reason.
        let _ = self.publish.send(message);
    }

    /// Returns how many more messages are stored.
    pub(super) fn stored(&self) -> Result<usize, ConnectionError> {
        self.waker.clear();
        let mut stored = 0;
        loop {
            match self.said.try_recv() {
                Ok(LinkEvent::Stored) => stored += 1,
                Ok(LinkEvent::Lost(why)) => return Err(ConnectionError::Temporary(io::Error::other(why))),
                Err(TryRecvError::Disconnected) => {
                    return Err(ConnectionError::Temporary(io::Error::other("the thread of the connection has ended")));
                }
                Ok(LinkEvent::Ready(_)) | Err(TryRecvError::Empty) => return Ok(stored),
            }
        }
    }

    /// Returns the source that becomes readable when the thread has sent something, for polling at once.
    pub(super) fn woken(&mut self) -> Option<&Source> {
        self.source = self.waker.source().ok();
        self.source.as_ref()
    }
}

/// The thread's main function.
fn run(broker: &Broker, time: Duration, messages: UnboundedReceiver<Publish>, back: &EventSender) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return back.say(LinkEvent::Lost(error.to_string())),
    };
    let result = runtime.block_on(async {
        let opening = tokio::time::timeout(time, open(broker, back));
        let opened = opening.await.map_err(|_| "the broker does not answer in time".to_owned())?;
        let stream = opened.map_err(|error| error.to_string())?;
        serve(&stream, messages, back).await.map_err(|error| error.to_string())
    });
    if let Err(why) = result {
        back.say(LinkEvent::Lost(why));
    }
    runtime.shutdown_background();
}

async fn open(broker: &Broker, back: &EventSender) -> Result<JetStream, JetStreamError> {
    let lost = back.clone();
    let lost = move || lost.say(LinkEvent::Lost("the connection to the broker is lost".to_owned()));
    let stream = JetStream::open(broker, "tracepoint sender", lost).await?;
    back.say(LinkEvent::Ready(Server { name: stream.server.clone(), max_payload: stream.max_payload }));
    Ok(stream)
}

/// Publishes messages and reports stored ones, until the session ends (`Ok`) or a message is not stored.
async fn serve(
    stream: &JetStream,
    mut messages: UnboundedReceiver<Publish>,
    back: &EventSender,
) -> Result<(), JetStreamError> {
    let mut waiting: VecDeque<Acknowledgement> = VecDeque::new();
    loop {
        let next = async {
            match waiting.front_mut() {
                Some(first) => first.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            stored = next => {
                stored?;
                waiting.pop_front();
                back.say(LinkEvent::Stored);
            }
            message = messages.recv() => {
                let Some(message) = message else { return Ok(()) };
                waiting.push_back(stream.publish(message).await?);
            }
        }
    }
}
