//! Connections of live viewers.

use super::close_on_drop::CloseOnDrop;
use super::streamed::WRONG_KEY_TIME;
use crate::connection::Connection;
use crate::shared::{ServerState, random};
use crate::viewer::{Answer, Viewer, packet_reply};
use anyhow::{Context as _, bail};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracepoint_wire::Decoded;
use tracepoint_wire::live::Request;

/// Maximum time between two requests of a viewer. Stock viewers send ten per second.
const IDLE_TIME: Duration = Duration::from_secs(600);

/// Serves a viewer's connection.
pub(super) async fn viewer(
    shared: Rc<ServerState>,
    mut connection: Connection,
    peer: SocketAddr,
) -> anyhow::Result<()> {
    let viewer = match shared.offer.viewer_key(peer.ip()) {
        Some(key) => Viewer::keyed(key, random()?),
        None => Viewer::default(),
    };
    let mut of = CloseOnDrop { shared, state: viewer, ended: Viewer::ended };
    loop {
        let request = match Request::decode(connection.bytes()) {
            Err(error) => return Err(error.into()),
            Ok(Decoded::Needs(needed)) => {
                let filled = if of.state.is_admitted() {
                    connection.fill(needed, Some(IDLE_TIME)).await
                } else {
                    connection.fill_greeting(needed).await
                };
                match filled {
                    Ok(true) => continue,
                    Ok(false) => return Ok(()),
                    Err(error) => bail!("no complete request came: {error}"),
                }
            }
            Ok(Decoded::Whole(request, size)) => {
                connection.take(size);
                request
            }
        };
        let answer = of.state.request(&mut of.shared.hub.borrow_mut(), request, Instant::now());
        if of.state.is_attached() {
            connection.establish();
        }
        let reply = match answer {
            Answer::Reply(reply) => reply,
            // The disk may be slow; other tasks run meanwhile.
            Answer::Read { file, offset, length } => {
                let read = spawn_blocking(move || read_at(&file, offset, length)).await;
                packet_reply(&read.unwrap_or_else(|error| Err(error.into())))
            }
            Answer::Close(why) => bail!(why),
            Answer::Refuse(reply, why) => {
                sleep(WRONG_KEY_TIME).await;
                // The viewer may be gone.
                let _ = connection.write(&reply).await;
                bail!(why);
            }
        };
        of.shared.hub.borrow_mut().counts.viewed_bytes += reply.len() as u64;
        connection.write(&reply).await.context("the viewer takes no answer")?;
    }
}

/// Reads at most `length` bytes; fewer if the file ends before.
fn read_at(file: &Arc<File>, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut read = 0;
    while read < length {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}
