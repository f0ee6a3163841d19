//! The beginning of a trace, which each owner reads completely: HELLO, metadata and streams.

use super::broker::{Broker, BrokerError};
use tracepoint_wire::nats::{Token, TraceSubject, control_frames};
use tracepoint_wire::stream::{Hello, ToCollector};

/// Maximum number of messages and bytes read.
const MAX_MESSAGES: usize = 1 << 18;
const MAX_BYTES: usize = 256 << 20;

/// The messages published before packets.
#[derive(Debug)]
pub(super) struct Preamble {
    hello: Vec<u8>,
    control: Vec<Vec<u8>>,
}

impl Preamble {
    /// Reads the beginning. `None` if the broker has no HELLO of the trace.
    pub(super) async fn read(broker: &Broker, trace: &TraceSubject) -> Result<Option<Self>, BrokerError> {
        let Some(hello) = broker.first(&trace.subject(&Token::Hello), 1).await? else { return Ok(None) };
        let (mut control, mut bytes, mut from) = (Vec::new(), 0, 1);
        let subject = trace.subject(&Token::Control);
        while let Some(message) = broker.first(&subject, from).await? {
            from = message.sequence + 1;
            bytes += message.payload.len();
            control.push(message.payload);
            if control.len() >= MAX_MESSAGES || bytes >= MAX_BYTES {
                break;
            }
        }
        Ok(Some(Self { hello: hello.payload, control }))
    }

    /// Returns the HELLO; `None` if it does not match the trace's subject.
    pub(super) fn hello(&self, trace: &TraceSubject) -> Option<Hello<'_>> {
        let Some(ToCollector::Hello(hello)) = control_frames(&self.hello).ok()?.pop() else { return None };
        let named = TraceSubject::new(hello.host, hello.session, hello.process, hello.trace);
        (named == *trace && hello.key == hello.trace).then_some(hello)
    }

    /// Decodes the messages after HELLO, in order; skips damaged ones.
    pub(super) fn frames(&self) -> impl Iterator<Item = ToCollector<'_>> {
        self.control.iter().filter_map(|payload| control_frames(payload).ok()).flatten()
    }

    pub(super) fn metadata(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for frame in self.frames() {
            let ToCollector::Metadata(piece) = frame else { continue };
            // Pieces may have been published again, and then overlap earlier ones.
            let known = usize::try_from(piece.offset).ok().and_then(|offset| text.len().checked_sub(offset));
            text.extend_from_slice(known.and_then(|known| piece.bytes.get(known..)).unwrap_or_default());
        }
        text
    }
}
