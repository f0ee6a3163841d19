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

/// Timeout for an acknowledgement: a cluster that elects a leader takes several seconds.
const ACK_TIME: Duration = Duration::from_secs(10);
/// Timeout for connecting.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long the broker remembers message ids.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// How long the broker keeps messages that no collector has stored.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// A request that the broker did not fulfil. The message is for the user.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct JetStreamError {
    reason: String,
}

impl JetStreamError {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    fn of(error: &dyn Error) -> Self {
        Self::new(error_text(error))
    }
}

/// Completes when a message is stored; the error is the reason if it is not.
pub type Acknowledgement = Pin<Box<dyn Future<Output = Result<(), JetStreamError>> + Send>>;

/// A connection to a broker that has the stream of traces. It belongs to the `tokio` runtime in which it was opened.
///
/// The client of `async-nats` would reconnect by itself and publish unsent messages in its own order. A lost connection is therefore
/// not reused; the publisher opens a new one.
#[derive(Clone)]
#[non_exhaustive]
pub struct JetStream {
    context: jetstream::Context,
    /// The name of the server.
    pub server: String,
    /// Maximum size of a message, in bytes.
    pub max_payload: usize,
}

impl fmt::Debug for JetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JetStream({}, {} bytes)", self.server, self.max_payload)
    }
}

impl JetStream {
    /// Connects with this client name, and finds or creates the stream. `lost` is called when the connection is lost, possibly more than once.
    ///
    /// # Errors
    ///
    /// The broker cannot be reached, has no `JetStream`, or has a stream that would drop accepted messages.
    pub async fn open(
        broker: &Broker,
        name: &str,
        lost: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, JetStreamError> {
        let lost = Arc::new(lost);
        let options = ConnectOptions::new().name(name).connection_timeout(CONNECT_TIME);
        let options = options.event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                lost();
            }
            std::future::ready(())
        });
        let client = options.connect(broker.servers()).await.map_err(|error| JetStreamError::of(&error))?;
        let info = client.server_info();
        let context =
            jetstream::ContextBuilder::new().timeout(ACK_TIME).ack_timeout(ACK_TIME).max_ack_inflight(1 << 16);
        let context = context.build(client);
        if let Ok(name) = context.stream_by_subject(ALL_SUBJECTS).await {
            let found = context.get_stream(name).await.map_err(|error| JetStreamError::of(&error))?;
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
                JetStreamError::new(format!("the broker has no stream for `{ALL_SUBJECTS}`, and cannot create one: {}; enable JetStream there (`nats-server -js`)", error_text(&error)))
            })?;
        }
        let server = info.server_name.chars().filter(|c| !c.is_control()).take(100).collect();
        Ok(Self { context, server, max_payload: info.max_payload })
    }

    /// Publishes a message after all previous ones; the returned future waits until it is stored.
    ///
    /// The leader of a replicated stream notes the id of a message before the replicas agree on it, and keeps the note even if they never do.
    /// Publishing again under that id is then acknowledged as a duplicate of a message without a sequence (server version 2.9), although
    /// nothing is stored. In that case it is published under another id; if both are stored after all, the collector recognises the packet.
    ///
    /// # Errors
    ///
    /// The connection does not accept it. The returned future reports if it is not stored.
    pub async fn publish(&self, message: Publish) -> Result<Acknowledgement, JetStreamError> {
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
                return Err(JetStreamError::new("the broker has noted a message, and not stored it"));
            }
            Ok(())
        }))
    }
}

/// An error with its causes, with terminal control characters removed.
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

/// Checks that a stream created by another program keeps acknowledged messages.
fn check(config: &stream::Config, version: &str) -> Result<(), JetStreamError> {
    let name: String = config.name.chars().filter(|c| !c.is_control()).collect();
    let is_bounded = config.max_bytes > 0 || config.max_messages > 0 || config.max_messages_per_subject > 0;
    if config.discard == stream::DiscardPolicy::Old && is_bounded {
        return Err(JetStreamError::new(format!(
            "the stream `{name}` of the broker drops its oldest messages when it is full; set its `discard` to `new`"
        )));
    }
    if config.max_bytes > 0 && version.starts_with("2.9.") {
        return Err(JetStreamError::new(format!(
            "the stream `{name}` of the broker has `max_bytes`, at which version {version} of the server drops the oldest message also where \
             `discard` is `new`; bound it by `max_msgs`"
        )));
    }
    Ok(())
}

/// True if the broker has the id of a message but not the message.
const fn is_only_noted(stored: &PublishAck) -> bool {
    stored.duplicate && stored.sequence == 0
}

/// The meaning of a refusal, with advice.
fn refused(error: &jetstream::context::PublishError) -> JetStreamError {
    let text = error_text(error);
    JetStreamError::new(match error.kind() {
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
    })
}
