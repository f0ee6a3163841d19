//! Stores messages in the stream of a broker.

use super::{ALL_SUBJECTS, Broker, Publish, STREAM};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, stream};
use async_nats::{ConnectOptions, Event};
use std::error::Error;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long the broker may take for an acknowledgement: a cluster that elects a leader takes some seconds.
const ACK_TIME: Duration = Duration::from_secs(10);
/// How long it may take to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long the broker remembers the ids of messages.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// How long it keeps messages that no collector has stored.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Waits until a message is stored; the error says why it is not.
pub type Acknowledgement = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A connection to a broker that has the stream of traces. It belongs to the `tokio` runtime in which it was opened.
///
/// The client of `async-nats` would connect again by itself and publish what it has not sent, in an order of its own. So a connection that is
/// lost is of no further use, and whoever publishes opens another one.
#[derive(Clone)]
#[non_exhaustive]
pub struct JetStream {
    context: jetstream::Context,
    /// The name of the server.
    pub server: String,
    /// The largest message that it takes, in bytes.
    pub max_payload: usize,
}

impl fmt::Debug for JetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JetStream({}, {} bytes)", self.server, self.max_payload)
    }
}

impl JetStream {
    /// Connects under this name, and finds or creates the stream. `lost` is called when the connection is lost, perhaps more than once.
    ///
    /// # Errors
    ///
    /// A text for the user: the broker cannot be reached, has no `JetStream`, or has a stream that would drop what it has accepted.
    pub async fn open(broker: &Broker, name: &str, lost: impl Fn() + Send + Sync + 'static) -> Result<Self, String> {
        let lost = Arc::new(lost);
        let options = ConnectOptions::new().name(name).connection_timeout(CONNECT_TIME);
        let options = options.event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                lost();
            }
            std::future::ready(())
        });
        let client = options.connect(broker.servers()).await.map_err(|error| error_text(&error))?;
        let info = client.server_info();
        let context =
            jetstream::ContextBuilder::new().timeout(ACK_TIME).ack_timeout(ACK_TIME).max_ack_inflight(1 << 16);
        let context = context.build(client);
        if let Ok(name) = context.stream_by_subject(ALL_SUBJECTS).await {
            let found = context.get_stream(name).await.map_err(|error| error_text(&error))?;
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
                format!("the broker has no stream for `{ALL_SUBJECTS}`, and cannot create one: {}; enable JetStream there (`nats-server -js`)", error_text(&error))
            })?;
        }
        let server = info.server_name.chars().filter(|c| !c.is_control()).take(100).collect();
        Ok(Self { context, server, max_payload: info.max_payload })
    }

    /// Publishes a message, behind those before it; what is returned waits until it is stored.
    ///
    /// The leader of a replicated stream notes the id of a message before the replicas agree on it, and keeps the note if they never do. What is
    /// published again under that id is then acknowledged as a duplicate of a message without a sequence (version 2.9 of the server), though
    /// nothing is stored. It is published under another id; if both are stored after all, the collector recognises the packet.
    ///
    /// # Errors
    ///
    /// A text for the user: the connection does not take it. That it is not stored is told by the returned future.
    pub async fn publish(&self, message: Publish) -> Result<Acknowledgement, String> {
        let Publish { subject, id, payload } = message;
        let again = format!("{id}.again");
        let message = jetstream::message::PublishMessage::build().payload(payload.into());
        let sent = self.context.send_publish(subject.clone(), message.clone().message_id(id));
        let stored = sent.await.map_err(|error| refused(&error))?.into_future();
        let context = self.context.clone();
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
}

/// An error with its causes, without what a terminal would interpret.
pub fn error_text(error: &dyn Error) -> String {
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
            "the stream `{name}` of the broker has `max_bytes`, at which version {version} of the server drops the oldest message also where \
             `discard` is `new`; bound it by `max_msgs`"
        ));
    }
    Ok(())
}

/// Whether the broker has the id of a message, and not the message.
const fn is_only_noted(stored: &PublishAck) -> bool {
    stored.duplicate && stored.sequence == 0
}

/// What a refusal means, and what to do about it.
fn refused(error: &jetstream::context::PublishError) -> String {
    let text = error_text(error);
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
