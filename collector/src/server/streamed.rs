//! Connections of senders that use the stream protocol.

mod deadlines;

use super::close_on_drop::CloseOnDrop;
use super::room::room;
use crate::connection::Connection;
use crate::hub::Refusal;
use crate::shared::{ServerState, random};
use crate::shares::Address;
use crate::stream_control::StreamControl;
use anyhow::{Context as _, Error, anyhow, bail};
use deadlines::Deadlines;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracepoint_wire::stream::{
    Attach, DecodeError, ErrorCode, FRAME_HEADER, FrameHeader, RecordHeader, ToCollector, ToSender,
};

/// Interval at which gaps and stored packets are checked.
const TICK: Duration = Duration::from_millis(25);
/// Delay of the answer to a sender with another key.
pub(super) const WRONG_KEY_TIME: Duration = Duration::from_secs(1);

/// Serves a control connection, starting with HELLO.
pub(super) async fn control(
    shared: Rc<ServerState>,
    mut connection: Connection,
    address: Address,
) -> anyhow::Result<()> {
    let offer = shared.offer.clone();
    let mut of = CloseOnDrop {
        shared,
        state: StreamControl::new(offer, address),
        ended: |control, hub, now| control.ended(hub, now),
    };
    let mut deadlines = Deadlines::new(connection.began, Instant::now());
    loop {
        let mut out = Vec::new();
        let unread = connection.bytes().len();
        let result = messages(&mut of, &mut connection, &mut out).await;
        let result = result.and_then(|needed| {
            of.state.tick(&mut of.shared.hub.borrow_mut(), Instant::now(), &mut out)?;
            Ok(needed)
        });
        if let Err((code, why)) = &result {
            if *code == ErrorCode::Key {
                tokio::time::sleep(WRONG_KEY_TIME).await;
            }
            ToSender::Error(*code, why).encode(&mut out);
        }
        connection.write(&out).await.context("the sender takes no message")?;
        let needed = result.map_err(|(_, why)| anyhow!(why))?;
        if of.state.has_ended() {
            return Ok(());
        }
        let before = connection.bytes().len();
        deadlines.handled(before < unread, before, Instant::now());
        let progress = of.state.progress(&mut of.shared.hub.borrow_mut());
        match unless(progress, timeout(TICK, connection.fill(needed, None))).await {
            Some(Ok(Ok(false))) => return Ok(()),
            Some(Ok(Err(error))) => bail!("no complete message came: {error}"),
            Some(Ok(Ok(true)) | Err(_)) | None => {}
        }
        if connection.bytes().len() > before {
            deadlines.heard(Instant::now());
        }
        deadlines.check(of.state.session().is_some(), Instant::now()).map_err(Error::msg)?;
    }
}

/// Awaits `what`; `None` if `progress` is notified first.
async fn unless<T>(progress: Option<Rc<Notify>>, what: impl Future<Output = T>) -> Option<T> {
    let mut what = pin!(what);
    let mut progress = pin!(async {
        match progress {
            Some(progress) => progress.notified().await,
            None => pending().await,
        }
    });
    poll_fn(|context| match what.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => progress.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Handles all messages that have arrived. Returns the number of bytes that the next one needs.
async fn messages(
    of: &mut CloseOnDrop<StreamControl>,
    connection: &mut Connection,
    out: &mut Vec<u8>,
) -> Result<usize, Refusal> {
    let malformed = |error: DecodeError| (ErrorCode::Protocol, format!("a message is malformed: {error}"));
    loop {
        let Some(header) = FrameHeader::decode(connection.bytes()) else { return Ok(FRAME_HEADER) };
        let header = header.map_err(malformed)?;
        let size = FRAME_HEADER + header.size;
        let Some(payload) = connection.bytes().get(FRAME_HEADER..size) else { return Ok(size) };
        let message = ToCollector::decode(header.kind, payload).map_err(malformed)?;
        let memory = match &message {
            ToCollector::Metadata(piece) => match of.state.session() {
                Some(session) => of.shared.memory(session, piece.bytes.len() as u32).await,
                None => None,
            },
            _ => None,
        };
        let needs = of.state.needs_room(&of.shared.hub.borrow(), &message);
        if let Some((address, session)) = needs {
            room(&of.shared, address, session).await;
        }
        let random = random().map_err(|error| (ErrorCode::Storage, error.to_string()))?;
        let hub = &mut of.shared.hub.borrow_mut();
        of.state.message(hub, message, memory, random, Instant::now(), out)?;
        connection.take(size);
        // A HELLO answered by CHALLENGE does not establish the connection.
        if of.state.session().is_some() {
            connection.establish();
        }
    }
}

/// Serves a data connection over TCP, which begins with `Attach`.
pub(super) async fn data(shared: Rc<ServerState>, mut connection: Connection) -> anyhow::Result<()> {
    let incomplete = "a packet is incomplete";
    while connection.bytes().len() < Attach::SIZE {
        if !connection.fill(Attach::SIZE, None).await.context(incomplete)? {
            return Ok(());
        }
    }
    let attach = connection.bytes().first_chunk().and_then(Attach::decode);
    connection.take(Attach::SIZE);
    let id = attach.and_then(|attach| shared.hub.borrow_mut().session_of_token(&attach.token));
    let Some((id, attach)) = id.zip(attach) else { bail!("its token is not known") };
    if let Some(streamed) = shared.hub.borrow_mut().streamed(id) {
        streamed.has_data = true;
    }
    connection.establish();
    loop {
        while connection.bytes().len() < RecordHeader::SIZE {
            silent(&shared, &attach, connection.bytes().is_empty().then(Instant::now));
            let is_open = connection.fill(RecordHeader::SIZE, None).await;
            silent(&shared, &attach, None);
            if !is_open.context(incomplete)? {
                return Ok(());
            }
        }
        let Some(header) = connection.bytes().first_chunk() else { continue };
        let RecordHeader { size } = RecordHeader::decode(header).context("a packet")?;
        connection.take(RecordHeader::SIZE);
        if size > shared.largest {
            bail!("a packet has {size} bytes, and at most {} are accepted", shared.largest);
        }
        let memory = shared.memory(id, size).await;
        let mut bytes = Vec::new();
        connection.read_into(size as usize, &mut bytes).await.context(incomplete)?;
        // A newer connection of the sender has another token.
        if shared.hub.borrow_mut().session_of_token(&attach.token).is_none() {
            bail!("the session has ended, or goes on with another connection");
        }
        if !shared.hub.borrow_mut().wire_packet(id, bytes, memory, Instant::now()) {
            bail!("a packet is damaged, or of no stream of this session");
        }
    }
}

/// Records since when the data connection has been silent, or `None` if it is not. Has no effect for a connection that a newer one has replaced.
fn silent(shared: &ServerState, attach: &Attach, since: Option<Instant>) {
    let mut hub = shared.hub.borrow_mut();
    let id = hub.session_of_token(&attach.token);
    if let Some(streamed) = id.and_then(|id| hub.streamed(id)) {
        streamed.silent = since;
    }
}
