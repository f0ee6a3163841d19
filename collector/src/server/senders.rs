//! Connections of stock senders.

use super::close_on_drop::CloseOnDrop;
use super::room::room;
use crate::connection::{Connection, GREETING_TIME};
use crate::hub::Hub;
use crate::relay::{Answer, Control};
use crate::shared::ServerState;
use crate::storage::Packet;
use anyhow::{Context as _, bail};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;
use tracepoint_wire::relay::{Command, DataHeader, Reply, ReturnCode};
use tracepoint_wire::stream::{FRAME_HEADER, FrameHeader};
use tracepoint_wire::{DecodeError, Decoded};

/// Maximum payload of a command in bytes.
const LARGEST_COMMAND: u64 = 4 << 20;

/// Serves a control connection.
pub(super) async fn control(
    shared: Rc<ServerState>,
    mut connection: Connection,
    peer: SocketAddr,
) -> anyhow::Result<()> {
    let control = Control::new(peer.ip(), &shared.offer);
    let mut of = CloseOnDrop { shared, state: control, ended: |control, hub, now| control.ended(hub, now) };
    loop {
        let (mut replies, mut needed, mut end) = (Vec::new(), 1, None);
        while end.is_none() {
            if of.state.is_streamed && connection.bytes().len() < FRAME_HEADER {
                needed = FRAME_HEADER;
                break;
            }
            if of.state.is_streamed && matches!(FrameHeader::decode(connection.bytes()), Some(Ok(_))) {
                connection.write(&replies).await.context("the sender takes no answer")?;
                return super::streamed::control(Rc::clone(&of.shared), connection, peer.ip().into()).await;
            }
            let minor = of.state.minor();
            let command = match Command::decode(connection.bytes(), minor, LARGEST_COMMAND) {
                Ok(Decoded::Needs(size)) => {
                    needed = size;
                    break;
                }
                Ok(Decoded::Whole(command, size)) => (command, size),
                Err(error) => {
                    if matches!(error, DecodeError::Command(_)) && of.state.session().is_some() {
                        Reply::Code(ReturnCode::Unknown).encode(minor, &mut replies);
                    }
                    end = Some(error.to_string());
                    break;
                }
            };
            let (command, size) = command;
            let memory = match &command {
                Command::SendMetadata { bytes, padding, .. } if u64::from(*padding) <= LARGEST_COMMAND => {
                    match of.state.session() {
                        Some(session) => of.shared.memory(session, bytes.len() as u32).await,
                        None => None,
                    }
                }
                Command::CreateSession(_) | Command::AddStream(_) if of.state.takes_stock => {
                    room(&of.shared, peer.ip().into(), of.state.session()).await;
                    None
                }
                _ => None,
            };
            let answer = of.state.command(&mut of.shared.hub.borrow_mut(), command, memory, Instant::now());
            connection.take(size);
            if of.state.session().is_some() {
                connection.establish();
            }
            let reply = match answer {
                Answer::Reply(reply) => reply,
                Answer::Close(reply, why) => {
                    end = Some(why);
                    reply
                }
            };
            if let Some(reply) = reply {
                reply.encode(minor, &mut replies);
            }
        }
        connection.write(&replies).await.context("the sender takes no answer")?;
        if let Some(why) = end {
            bail!(why);
        }
        let filled = match of.state.session() {
            None => connection.fill_greeting(needed).await,
            Some(_) => connection.fill(needed, None).await,
        };
        match filled {
            Ok(true) => {}
            Ok(false) if of.state.is_asked_for_key() => {
                bail!("the sender has no shared key; give it a copy of the key file (`--key-file`)");
            }
            Ok(false) => return Ok(()),
            Err(error) => bail!("no complete command came: {error}"),
        }
    }
}

/// Returns whether a sender on this host has a session.
fn has_session(hub: &Hub, peer: IpAddr) -> bool {
    hub.sessions().any(|(_, session)| session.is_open() && session.peer == Some(peer))
}

/// Serves a data connection.
pub(super) async fn data(shared: Rc<ServerState>, mut connection: Connection, peer: SocketAddr) -> anyhow::Result<()> {
    let mut is_known = false;
    loop {
        while connection.bytes().len() < DataHeader::SIZE {
            let first = (!is_known).then_some(GREETING_TIME);
            match connection.fill(DataHeader::SIZE, first).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // The first packet may arrive at any time while the sender has a session.
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut && connection.bytes().is_empty() => {
                    if !has_session(&shared.hub.borrow(), peer.ip()) {
                        bail!("no packet came, and its host has no session");
                    }
                }
                Err(error) => bail!("no complete packet came: {error}"),
            }
        }
        if !is_known && connection.bytes().starts_with(b"TPSTREAM") {
            return super::streamed::data(shared, connection).await;
        }
        let Some(header) = connection.bytes().first_chunk().map(DataHeader::decode) else { continue };
        connection.take(DataHeader::SIZE);
        let DataHeader { handle, sequence, size, padding, .. } = header;
        let total = u64::from(size) + u64::from(padding);
        if total > u64::from(shared.largest) {
            bail!(
                "a packet has {total} bytes, and at most {} fit into half of the memory; give the collector more (--memory)",
                shared.largest
            );
        }
        if !shared.offer.takes_stock(peer.ip()) {
            bail!("packets of a stock sender came, and this collector takes none from there (`--allow-stock`)");
        }
        let Some(session) = shared.hub.borrow().session_that_takes(handle) else {
            bail!("a packet came for stream {handle}, which is not there or has ended");
        };
        is_known = true;
        connection.establish();
        let memory = shared.memory(session, size).await;
        let mut bytes = Vec::new();
        let read = connection.read_into(size as usize, &mut bytes).await;
        read.context("a packet is incomplete")?;
        let packet = Packet::new(bytes, padding, memory);
        if !shared.hub.borrow_mut().packet(handle, sequence, packet, Instant::now()) {
            bail!("a packet came for stream {handle}, which has ended");
        }
    }
}
