//! Accepts connections, up to a limit for each kind.
//!
//! An address has its [share](crate::shares) of them. A connection is half-open until it belongs to a session, which its peer opened, joined or
//! attached to. Half-open connections may be closed in favour of others. When an address has no room left, its new connection replaces the oldest
//! half-open one of the address with the most half-open ones, provided that the address would have a share if the others had none half-open.
//! Otherwise it replaces the oldest half-open connection of its own address. So a half-open connection is closed in favour of another address only if
//! its own address has more of them. Connections that belong to a session are never closed for others.

use crate::connection::Connection;
use crate::shared::ServerState;
use crate::shares::{Address, Holder, Share, Shares};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// Pause after a failed accept; the usual cause is a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// An open connection.
#[derive(Debug)]
struct Open {
    task: AbortHandle,
    /// Set once the connection is established.
    is_established: Rc<Cell<bool>>,
    address: Address,
    share: Share,
}

impl Open {
    fn is_half_open(&self) -> bool {
        !self.is_established.get()
    }
}

/// Accepts connections, at most `most` at a time. Further ones replace a half-open one, or are closed at once.
pub(super) async fn accept<F, T>(shared: Rc<ServerState>, listener: TcpListener, most: usize, serve: F)
where
    F: Fn(Rc<ServerState>, Connection, SocketAddr) -> T + Copy + 'static,
    T: Future<Output = anyhow::Result<()>> + 'static,
{
    let (mut open, all): (VecDeque<Open>, _) = (VecDeque::new(), Shares::new(most));
    let mut tasks = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The connection may have been aborted already, or file descriptors are lacking.
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
                hub.say(format!("the connection from {peer} was closed: {why:#}"));
            }
        });
        open.push_back(Open { task, is_established, address, share });
    }
}

/// Takes a share for one more connection from this address, closing another connection if necessary.
fn make_room(shared: &ServerState, open: &mut VecDeque<Open>, all: &Shares, address: Address) -> Option<Share> {
    let holder = Holder::address(address);
    if let Some(share) = all.take(holder, 1) {
        return Some(share);
    }
    open.retain(|open| !open.task.is_finished());
    if let Some(share) = all.take(holder, 1) {
        return Some(share);
    }
    let mut half_open: HashMap<Address, usize> = HashMap::new();
    for open in open.iter().filter(|open| open.is_half_open()) {
        *half_open.entry(open.address).or_default() += 1;
    }
    let own = half_open.remove(&address).unwrap_or_default();
    let of_others = half_open.values().sum();
    let richest = half_open.into_iter().max_by_key(|(_, count)| *count);
    let from = match richest {
        Some((other, count)) if count > own && all.would_fit(holder, 1, of_others) => other,
        _ => address,
    };
    let oldest = open.iter().position(|open| open.is_half_open() && open.address == from)?;
    let oldest = open.remove(oldest)?;
    oldest.task.abort();
    shared.hub.borrow_mut().counts.refused += 1;
    Some(oldest.share.hand_over(holder))
}
