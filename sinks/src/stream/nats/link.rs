//! The connection to the broker: a thread with the event loop that `async-nats` needs, and the way there and back.
//!
//! ```text
//!   session ── Publish ──▶ thread: publishes in this order, waits for the acknowledgements in this order
//!   session ◀── Said ───── Stored, for each one; Lost: the broker refuses one or is away, and the thread ends
//! ```
//!
//! The client of `async-nats` would connect again by itself and publish what it has not sent, in an order of its own. So a connection that is lost
//! ends the thread, and the worker opens another one.

use crate::stream::session::Trouble;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, stream};
use async_nats::{ConnectOptions, Event};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::error::Error;
use std::future::{Future, IntoFuture};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracepoint_reader::net::nats::{ALL_SUBJECTS, Broker, STREAM};

/// The thread's name, as `top -H` shows it.
const NAME: &str = "tracepoint-nats";
/// How long the broker may take for an acknowledgement: a cluster that elects a leader takes some seconds.
const ACK_TIME: Duration = Duration::from_secs(10);
/// How long the broker remembers the ids of messages.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// How long it keeps messages that no collector has stored.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// A message to publish.
#[derive(Debug)]
pub(super) struct Publish {
    pub(super) subject: String,
    pub(super) id: String,
    pub(super) payload: Vec<u8>,
}

/// What the thread says.
#[derive(Debug)]
enum Said {
    Ready(Server),
    /// The next message is stored.
    Stored,
    Lost(String),
}

/// The server to which the connection is.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) max_payload: usize,
}

/// A connection; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Link {
    publish: UnboundedSender<Publish>,
    said: Receiver<Said>,
    waker: Arc<OwnedFd>,
    pub(super) server: Server,
}

/// The thread's way back.
#[derive(Clone)]
struct Back {
    said: Sender<Said>,
    waker: Arc<OwnedFd>,
}

impl Back {
    fn say(&self, said: Said) {
        // A session that has ended needs nothing.
        let _ = self.said.send(said);
        let _ = rustix::io::write(&self.waker, &[1; 8]);
    }
}

impl Link {
    /// Connects, and finds or creates the stream of the broker.
    pub(super) fn open(broker: &Broker, deadline: Instant) -> Result<Self, Trouble> {
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let (sender, said) = channel();
        let (publish, messages) = unbounded_channel();
        let back = Back { said: sender, waker: Arc::clone(&waker) };
        let broker = broker.clone();
        let time = deadline.saturating_duration_since(Instant::now());
        Builder::new().name(NAME.to_owned()).spawn(move || run(&broker, time, messages, &back))?;
        // The thread answers in time.
        match said.recv() {
            Ok(Said::Ready(server)) => Ok(Self { publish, said, waker, server }),
            Ok(Said::Lost(why)) => Err(Trouble::Temporary(io::Error::other(why))),
            _ => Err(Trouble::Temporary(io::Error::other("the thread of the connection has ended"))),
        }
    }

    /// Publishes a message behind the others.
    pub(super) fn publish(&self, message: Publish) {
        // If the thread has ended, it has said why.
        let _ = self.publish.send(message);
    }

    /// How many messages more are stored.
    pub(super) fn stored(&self) -> Result<usize, Trouble> {
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        let mut stored = 0;
        loop {
            match self.said.try_recv() {
                Ok(Said::Stored) => stored += 1,
                Ok(Said::Lost(why)) => return Err(Trouble::Temporary(io::Error::other(why))),
                Ok(Said::Ready(_)) | Err(_) => return Ok(stored),
            }
        }
    }

    /// Becomes readable when something was said.
    pub(super) fn waker(&self) -> &OwnedFd {
        &self.waker
    }
}

/// The thread.
fn run(broker: &Broker, time: Duration, messages: UnboundedReceiver<Publish>, back: &Back) {
    tracepoint_ring::thread::never_trace_this_thread();
    crate::signals::block();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return back.say(Said::Lost(error.to_string())),
    };
    let result = runtime.block_on(async {
        let opening = tokio::time::timeout(time, open(broker, back));
        let context = opening.await.map_err(|_| "the broker does not answer in time".to_owned())??;
        serve(&context, messages, back).await
    });
    if let Err(why) = result {
        back.say(Said::Lost(why));
    }
    runtime.shutdown_background();
}

/// An error with its causes, without what a terminal would interpret.
fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text.chars().filter(|c| !c.is_control()).take(500).collect()
}

async fn open(broker: &Broker, back: &Back) -> Result<jetstream::Context, String> {
    let lost = back.clone();
    let options = ConnectOptions::new().name("tracepoint sender").connection_timeout(Duration::from_secs(5));
    let options = options.event_callback(move |event| {
        if matches!(event, Event::Disconnected | Event::Closed) {
            lost.say(Said::Lost("the connection to the broker is lost".to_owned()));
        }
        std::future::ready(())
    });
    let client = options.connect(broker.servers()).await.map_err(|error| text(&error))?;
    let info = client.server_info();
    let context = jetstream::ContextBuilder::new().timeout(ACK_TIME).ack_timeout(ACK_TIME).max_ack_inflight(1 << 16);
    let context = context.build(client);
    if let Ok(name) = context.stream_by_subject(ALL_SUBJECTS).await {
        let found = context.get_stream(name).await.map_err(|error| text(&error))?;
        check(&found.cached_info().config, &info.version)?;
    } else {
        let config = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![ALL_SUBJECTS.to_owned()],
            discard: stream::DiscardPolicy::New,
            max_age: MAX_AGE,
            duplicate_window: DUPLICATE_WINDOW,
            num_replicas: broker.replicas(),
            description: Some("packets of traces that no collector has stored".to_owned()),
            ..stream::Config::default()
        };
        context.get_or_create_stream(config).await.map_err(|error| {
            format!("the broker has no stream for `{ALL_SUBJECTS}`, and cannot create one: {}; enable JetStream there (`nats-server -js`)", text(&error))
        })?;
    }
    let server = Server {
        name: info.server_name.chars().filter(|c| !c.is_control()).take(100).collect(),
        max_payload: info.max_payload,
    };
    back.say(Said::Ready(server));
    Ok(context)
}

/// Checks that a stream that another one has created keeps what it has acknowledged.
fn check(config: &stream::Config, version: &str) -> Result<(), String> {
    let name: String = config.name.chars().filter(|c| !c.is_control()).collect();
    let is_bounded = config.max_bytes > 0 || config.max_messages > 0 || config.max_messages_per_subject > 0;
    if config.discard == stream::DiscardPolicy::Old && is_bounded {
        return Err(format!(
            "the stream `{name}` of the broker drops its oldest messages when it is full; set its `discard` to `new`"
        ));
    }
    if config.max_bytes > 0 && version.starts_with("2.9.") {
        return Err(format!(
            "the stream `{name}` of the broker has `max_bytes`, at which version {version} of the server drops the oldest message also where              `discard` is `new`; bound it by `max_msgs`"
        ));
    }
    Ok(())
}

type Acknowledgement = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Publishes a message; what is returned waits until it is stored.
///
/// The leader of a replicated stream notes the id of a message before the replicas agree on it, and keeps the note if they never do. What is
/// published again under that id is then acknowledged as a duplicate of a message without a sequence (version 2.9 of the server), though nothing
/// is stored. It is published under another id; if both are stored after all, the collector recognises the packet.
async fn publish(context: &jetstream::Context, message: Publish) -> Result<Acknowledgement, String> {
    let Publish { subject, id, payload } = message;
    let again = format!("{id}.again");
    let message = jetstream::message::PublishMessage::build().payload(payload.into());
    let sent = context.send_publish(subject.clone(), message.clone().message_id(id));
    let stored = sent.await.map_err(|error| refused(&error))?.into_future();
    let context = context.clone();
    Ok(Box::pin(async move {
        let stored = stored.await.map_err(|error| refused(&error))?;
        if !is_only_noted(&stored) {
            return Ok(());
        }
        let sent = context.send_publish(subject, message.message_id(again)).await;
        let stored = sent.map_err(|error| refused(&error))?.await.map_err(|error| refused(&error))?;
        if is_only_noted(&stored) {
            return Err("the broker has noted a message, and not stored it".to_owned());
        }
        Ok(())
    }))
}

/// Whether the broker has the id of a message, and not the message.
const fn is_only_noted(stored: &PublishAck) -> bool {
    stored.duplicate && stored.sequence == 0
}

/// What a refusal means, and what to do about it.
fn refused(error: &jetstream::context::PublishError) -> String {
    let text = text(error);
    match error.kind() {
        PublishErrorKind::StreamNotFound => {
            format!("the broker has no stream for `{ALL_SUBJECTS}` at present: {text}")
        }
        PublishErrorKind::TimedOut => "the broker has not acknowledged a message in time".to_owned(),
        _ if text.contains("maximum") => {
            format!(
                "the broker is full: {text}; start more collectors (`tracectl collect --nats`), or raise the limits of its stream"
            )
        }
        _ => format!("the broker refuses a message: {text}"),
    }
}

/// Publishes, and tells what is stored, until the session ends (`Ok`) or a message is not stored.
async fn serve(
    context: &jetstream::Context,
    mut messages: UnboundedReceiver<Publish>,
    back: &Back,
) -> Result<(), String> {
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
                back.say(Said::Stored);
            }
            message = messages.recv() => {
                let Some(message) = message else { return Ok(()) };
                waiting.push_back(publish(context, message).await?);
            }
        }
    }
}
