//! The connection to a broker, its stream and its bucket.

use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, kv};
use async_nats::{Client, ConnectOptions};
use std::error::Error;
use std::fmt;
use std::time::Duration;
use tracepoint_wire::nats::{self, ALL_HELLOS, ALL_SUBJECTS, BUCKET, TraceSubject, error_text};

/// Timeout of a request.
const TIME: Duration = Duration::from_secs(5);
/// Retention of leases that do not change.
const LEASE_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Period in which the broker detects duplicate messages in the bucket.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Time after which the broker redelivers an unacknowledged message. It is longer than a slow disk takes, and redelivered messages are recognised.
const ACK_TIME: Duration = Duration::from_secs(300);
/// Retention of the consumer of a collector that is gone.
const CONSUMER_AGE: Duration = Duration::from_secs(3600);

/// A failed broker request; control characters are stripped from the message.
#[derive(Debug)]
pub(crate) struct BrokerError(pub(super) String);

impl BrokerError {
    pub(super) fn new(what: &str, error: &dyn Error) -> Self {
        Self(format!("cannot {what}: {}", error_text(error)))
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the configuration of the bucket's stream. The client could create the bucket, but does not understand account information of server
/// version 2.9.
fn bucket(replicas: usize) -> stream::Config {
    stream::Config {
        name: format!("KV_{BUCKET}"),
        description: Some("which collector has which trace".to_owned()),
        subjects: vec![format!("$KV.{BUCKET}.>")],
        max_messages_per_subject: 1,
        max_age: LEASE_AGE,
        duplicate_window: DUPLICATE_WINDOW,
        discard: stream::DiscardPolicy::New,
        num_replicas: replicas,
        allow_rollup: true,
        deny_delete: true,
        ..stream::Config::default()
    }
}

/// A broker that has a stream of traces.
#[derive(Clone, Debug)]
pub(crate) struct Broker {
    client: Client,
    pub(super) stream: Stream,
    pub(super) leases: kv::Store,
}

#[derive(Debug)]
pub(super) struct StoredMessage {
    pub(super) sequence: u64,
    pub(super) payload: Vec<u8>,
}

impl Broker {
    /// Connects. The client reconnects by itself when the connection is lost.
    pub(super) async fn connect(broker: &nats::Broker) -> Result<Client, BrokerError> {
        let options =
            ConnectOptions::new().name("tracectl collect").connection_timeout(TIME).request_timeout(Some(TIME));
        options
            .connect(broker.servers())
            .await
            .map_err(|error| BrokerError::new(&format!("connect to {broker}"), &error))
    }

    /// Opens the stream, and the bucket, which is created if missing. `None` if no sender has created the stream yet.
    pub(super) async fn open(client: Client, broker: &nats::Broker) -> Result<Option<Self>, BrokerError> {
        let context = jetstream::ContextBuilder::new().timeout(TIME).ack_timeout(TIME).build(client.clone());
        let Ok(name) = context.stream_by_subject(ALL_SUBJECTS).await else { return Ok(None) };
        let stream = context.get_stream(name).await.map_err(|error| BrokerError::new("find the stream", &error))?;
        let leases = if let Ok(leases) = context.get_key_value(BUCKET).await {
            leases
        } else {
            // Another collector may have created it at the same time.
            let created = context.create_stream(bucket(broker.replicas())).await;
            let found = context.get_key_value(BUCKET).await;
            found.map_err(|error| match created {
                Err(refused) => BrokerError::new("create the bucket of leases", &refused),
                Ok(_) => BrokerError::new("find the bucket of leases", &error),
            })?
        };
        Ok(Some(Self { client, stream, leases }))
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    pub(super) fn max_payload(&self) -> usize {
        self.client.server_info().max_payload
    }

    pub(super) async fn traces(&self) -> Result<Vec<TraceSubject>, BrokerError> {
        let failed = |error: &dyn Error| BrokerError::new("list the traces of the broker", error);
        let info = self.stream.info_builder().subjects(ALL_HELLOS).fetch().await.map_err(|error| failed(&error))?;
        let mut traces = Vec::new();
        let mut subjects = std::pin::pin!(info);
        while let Some(subject) = futures_util::StreamExt::next(&mut subjects).await {
            let (subject, _) = subject.map_err(|error| failed(&error))?;
            traces.extend(TraceSubject::parse(&subject).map(|(trace, _)| trace));
        }
        Ok(traces)
    }

    /// Returns the first message of a subject from this sequence on.
    pub(super) async fn first(&self, subject: &str, from: u64) -> Result<Option<StoredMessage>, BrokerError> {
        let found = self.stream.get_first_raw_message_by_subject(subject, from).await;
        found_or_none(
            found.map(|message| StoredMessage { sequence: message.sequence, payload: message.payload.into() }),
        )
    }

    pub(super) async fn last(&self, trace: &TraceSubject) -> Result<Option<u64>, BrokerError> {
        let found = self.stream.get_last_raw_message_by_subject(&trace.all()).await;
        found_or_none(found.map(|message| message.sequence))
    }

    /// Creates the consumer of a trace for an epoch, from this sequence on.
    pub(super) async fn consumer(
        &self,
        trace: &TraceSubject,
        name: &str,
        from: u64,
    ) -> Result<Consumer<pull::Config>, BrokerError> {
        let config = pull::Config {
            durable_name: Some(name.to_owned()),
            description: Some("a trace of a collector".to_owned()),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::All,
            ack_wait: ACK_TIME,
            max_ack_pending: -1,
            filter_subject: trace.all(),
            inactive_threshold: CONSUMER_AGE,
            ..pull::Config::default()
        };
        self.stream.create_consumer(config).await.map_err(|error| BrokerError::new("make a consumer", &error))
    }

    pub(super) async fn purge_below(&self, subject: &str, sequence: u64) -> Result<(), BrokerError> {
        let purge = self.stream.purge().filter(subject).sequence(sequence);
        purge.await.map(drop).map_err(|error| BrokerError::new("purge", &error))
    }

    pub(super) async fn purge_all(&self, trace: &TraceSubject) -> Result<(), BrokerError> {
        let purge = self.stream.purge().filter(trace.all());
        purge.await.map(drop).map_err(|error| BrokerError::new("purge a trace", &error))
    }
}

fn found_or_none<T>(found: Result<T, stream::LastRawMessageError>) -> Result<Option<T>, BrokerError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(BrokerError::new("read a message", &error)),
    }
}
