//! Accepting connections, of which there is a limit for each kind.
//!
//! Where the limit is reached, a new connection replaces the oldest one that has not shown yet what it is for. So half-open connections, however
//! many, refuse a peer only if as many more are opened before it has said what it wants. Connections with a session are never closed for others.

use crate::connection::Connection;
use crate::shared::Shared;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// The pause after a failure to accept a connection, which is mostly a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection that is open, and whether it has shown what it is for.
type Open = (AbortHandle, Rc<Cell<bool>>);

/// Accepts connections, at most `most` at a time. Further ones are closed at once, if no other can be.
pub(super) async fn accept<F, T>(shared: Rc<Shared>, listener: TcpListener, most: usize, serve: F)
where
    F: Fn(Rc<Shared>, Connection, SocketAddr) -> T + Copy + 'static,
    T: Future<Output = Result<(), String>> + 'static,
{
    let mut open: VecDeque<Open> = VecDeque::new();
    let mut tasks = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Of one connection, which is gone already, or for want of descriptors.
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    shared.hub.borrow_mut().say(format!("cannot accept a connection: {error}"));
                    sleep(PAUSE).await;
                }
                continue;
            }
        };
        let has_room = make_room(&shared, &mut open, most);
        let Some(connection) = has_room.then(|| Connection::new(stream).ok()).flatten() else {
            shared.hub.borrow_mut().counts.refused += 1;
            continue;
        };
        shared.hub.borrow_mut().counts.connections += 1;
        let (shared, is_established) = (Rc::clone(&shared), connection.is_established());
        let task = tasks.spawn_local(async move {
            if let Err(why) = serve(Rc::clone(&shared), connection, peer).await {
                let mut hub = shared.hub.borrow_mut();
                hub.counts.failed += 1;
                hub.say(format!("the connection from {peer} was closed: {why}"));
            }
        });
        open.push_back((task, is_established));
    }
}

/// Whether there is room for a connection more; closes another one for it if need be.
fn make_room(shared: &Shared, open: &mut VecDeque<Open>, most: usize) -> bool {
    if open.len() < most {
        return true;
    }
    open.retain(|(task, _)| !task.is_finished());
    if open.len() < most {
        return true;
    }
    let Some(oldest) = open.iter().position(|(_, is_established)| !is_established.get()) else { return false };
    if let Some((task, _)) = open.remove(oldest) {
        task.abort();
        shared.hub.borrow_mut().counts.refused += 1;
    }
    true
}
