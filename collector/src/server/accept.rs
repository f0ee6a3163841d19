//! Accepting connections, of which there is a limit for each kind.
//!
//! An address has its [share](crate::shares) of them. Where it is used up, a new connection replaces the oldest one of the address that has not shown
//! yet what it is for; if all addresses together have used up everything, the oldest such one of any address. So half-open connections, however
//! many, refuse a peer of the same address only if as many more are opened before it has said what it wants, and no other. Connections with a
//! session are never closed for others.

use crate::connection::Connection;
use crate::shared::Shared;
use crate::shares::{Address, Holder, Share, Shares};
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

/// A connection that is open.
struct Open {
    task: AbortHandle,
    /// Whether it has shown what it is for.
    is_established: Rc<Cell<bool>>,
    address: Address,
    _share: Share,
}

/// Accepts connections, at most `most` at a time. Further ones are closed at once, if no other can be.
pub(super) async fn accept<F, T>(shared: Rc<Shared>, listener: TcpListener, most: usize, serve: F)
where
    F: Fn(Rc<Shared>, Connection, SocketAddr) -> T + Copy + 'static,
    T: Future<Output = Result<(), String>> + 'static,
{
    let (mut open, all): (VecDeque<Open>, _) = (VecDeque::new(), Shares::new(most));
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
        let address = peer.ip().into();
        let room = make_room(&shared, &mut open, &all, address);
        let Some((share, connection)) = room.and_then(|share| Some((share, Connection::new(stream).ok()?))) else {
            let mut hub = shared.hub.borrow_mut();
            hub.counts.refused += 1;
            let why = "its address has its share of the connections; raise the limit on open files of the collector (`ulimit -n`, `LimitNOFILE=`)";
            hub.say_refused(address, "connection", why);
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
        open.push_back(Open { task, is_established, address, _share: share });
    }
}

/// The share of a connection more from this address; closes another one for it if need be.
fn make_room(shared: &Shared, open: &mut VecDeque<Open>, all: &Shares, address: Address) -> Option<Share> {
    let take = || all.take(Holder::address(address), 1);
    if let Some(share) = take() {
        return Some(share);
    }
    open.retain(|open| !open.task.is_finished());
    if let Some(share) = take() {
        return Some(share);
    }
    let has_any = open.iter().any(|open| open.address == address);
    let may_close = |open: &Open| !open.is_established.get() && (!has_any || open.address == address);
    let oldest = open.iter().position(may_close).and_then(|oldest| open.remove(oldest))?;
    oldest.task.abort();
    drop(oldest);
    shared.hub.borrow_mut().counts.refused += 1;
    take()
}
