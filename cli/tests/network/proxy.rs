//! Proxies that disturb traffic: datagrams are lost, repeated and reordered depending on a seed; connections are cut and restored.

use crate::link::{Faults, Link};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Pause of an idle proxy.
const IDLE: Duration = Duration::from_millis(1);

/// Carries datagrams between any number of clients and a server until it is dropped. Each client and direction has a separate link, so
/// that their faults are independent.
#[derive(Debug)]
pub(crate) struct UdpProxy {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Number of datagrams received from clients, and how many of these were lost.
    received: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    is_cut: Arc<AtomicBool>,
}

struct Client {
    socket: UdpSocket,
    there: Link,
    back: Link,
}

impl UdpProxy {
    /// Listens at `address`, on a free port if its port is 0. `faults` are for the two directions, to the server and back.
    pub(crate) fn start(address: SocketAddr, server: SocketAddr, seed: u64, faults: [Faults; 2]) -> Self {
        let front = UdpSocket::bind(address).expect("a socket");
        front.set_read_timeout(Some(IDLE)).expect("a timeout");
        let [stop, is_cut] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [received, lost] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let address = front.local_addr().expect("an address");
        let proxy = Self {
            address,
            stop: Arc::clone(&stop),
            received: Arc::clone(&received),
            lost: Arc::clone(&lost),
            is_cut: Arc::clone(&is_cut),
        };
        let connect = move || {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            socket.connect(server)?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(socket)
        };
        // Sockets belong to the namespace of their thread, which a thread inherits.
        thread::spawn(move || {
            let (epoch, mut buffer) = (Instant::now(), vec![0; 1 << 16]);
            let mut clients: HashMap<SocketAddr, Client> = HashMap::new();
            while !stop.load(Ordering::Relaxed) {
                if let Ok((length, from)) = front.recv_from(&mut buffer) {
                    let number = 2 * clients.len() as u64;
                    let client = clients.entry(from).or_insert_with(|| Client {
                        socket: connect().expect("a socket"),
                        there: Link::new(seed.wrapping_add(number), faults[0]),
                        back: Link::new(seed.wrapping_add(number + 1), faults[1]),
                    });
                    client.there.send(&buffer[..length], epoch.elapsed());
                    received.fetch_add(1, Ordering::Relaxed);
                }
                let now = epoch.elapsed();
                for (address, client) in &mut clients {
                    while let Ok(length) = client.socket.recv(&mut buffer) {
                        client.back.send(&buffer[..length], now);
                    }
                    // The receiver may have ended.
                    while let Some(datagram) = client.there.take(now) {
                        if !is_cut.load(Ordering::Relaxed) {
                            let _ = client.socket.send(&datagram);
                        }
                    }
                    while let Some(datagram) = client.back.take(now) {
                        let _ = front.send_to(&datagram, address);
                    }
                }
                lost.store(clients.values().map(|client| client.there.lost).sum(), Ordering::Relaxed);
            }
        });
        proxy
    }

    /// Number of datagrams from clients. A client that sends at most 100 ahead of this number loses none in the socket of the proxy.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// From now on, nothing reaches the server.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Datagrams that were lost on their way to the server.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for UdpProxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Carries TCP connections to a server, until it is dropped.
#[derive(Debug)]
pub(crate) struct TcpProxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// True if new connections are closed immediately.
    is_cut: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    connections: AtomicU64,
}

impl TcpProxy {
    /// Listens at `address`, on `port` or a free one (0).
    pub(crate) fn start(address: &str, port: u16, server: SocketAddr) -> Self {
        let listener = TcpListener::bind((address, port)).expect("a socket");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let shared = Arc::new(Shared::default());
        let proxy = Self { address: listener.local_addr().expect("an address"), shared: Arc::clone(&shared) };
        thread::spawn(move || {
            while !shared.stop.load(Ordering::Relaxed) {
                let Ok((client, _)) = listener.accept() else {
                    thread::sleep(IDLE);
                    continue;
                };
                if !shared.is_cut.load(Ordering::Relaxed) {
                    // If the server is gone it refuses the connection, and so does the proxy.
                    let _ = join(&client, server, &shared);
                }
            }
        });
        proxy
    }

    /// Closes all connections in both directions, with the data in transit, and refuses new ones.
    pub(crate) fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::Relaxed);
        for socket in self.shared.open.lock().expect("the sockets").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Accepts connections again.
    pub(crate) fn restore(&self) {
        self.shared.is_cut.store(false, Ordering::Relaxed);
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.cut();
    }
}

/// Connects a client and the server with two threads.
fn join(client: &TcpStream, server: SocketAddr, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    shared.connections.fetch_add(1, Ordering::Relaxed);
    for socket in [client, &server] {
        socket.set_nonblocking(false)?;
        socket.set_nodelay(true)?;
        shared.open.lock().expect("the sockets").push(socket.try_clone()?);
    }
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client.try_clone()?)] {
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{seed, wait_for};

    /// Which of 2000 numbered datagrams arrive. The first one is answered.
    fn arrived(seed: u64, faults: Faults) -> Vec<u32> {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let proxy = UdpProxy::start(any, server.local_addr().unwrap(), seed, [faults, Faults::NONE]);
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let serve = move || {
            let (mut numbers, mut buffer) = (Vec::new(), [0; 100]);
            while let Ok((length, from)) = server.recv_from(&mut buffer) {
                count.fetch_add(1, Ordering::Relaxed);
                if numbers.is_empty() {
                    server.send_to(b"answer", from).unwrap();
                }
                numbers.push(u32::from_be_bytes(buffer[..length].try_into().unwrap()));
            }
            numbers
        };
        let serving = thread::spawn(serve);
        for number in 0..2000_u32 {
            // The receive buffer of a socket holds about 250 of these datagrams. Up to 100 are repeated.
            let settled = || received.load(Ordering::Relaxed) + proxy.lost();
            wait_for(|| (settled() + 50 > u64::from(number)).then_some(()));
            client.send_to(&number.to_be_bytes(), proxy.address).unwrap();
        }
        assert_eq!(client.recv(&mut [0; 100]).unwrap(), 6, "answers pass, too");
        let numbers = serving.join().unwrap();
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() as u64 + proxy.lost() >= 2000, "{} and {} lost", distinct.len(), proxy.lost());
        numbers
    }

    #[test]
    fn datagrams_are_disturbed_by_the_seed() {
        let seed = seed::seed();
        assert_eq!(arrived(seed, Faults::NONE), (0..2000).collect::<Vec<_>>());
        let faults = Faults { loss: 200, duplicates: 50, reordering: 20, ..Faults::NONE };
        let numbers = arrived(seed, faults);
        assert!(numbers.len() > 1000 && numbers.len() < 2000 && !numbers.is_sorted(), "{}", numbers.len());
        // The reordering distance also depends on when the next one is sent.
        let [mut once, mut again] = [numbers, arrived(seed, faults)];
        once.sort_unstable();
        again.sort_unstable();
        assert!(once == again, "the same seed loses and repeats the same datagrams");
    }

    #[test]
    fn connections_are_cut_and_restored() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = TcpProxy::start("127.0.0.1", 0, server.local_addr().unwrap());
        for round in 1..=3 {
            let mut client = TcpStream::connect(proxy.address).unwrap();
            let (mut peer, _) = server.accept().unwrap();
            let mut word = [0; 4];
            client.write_all(b"ping").unwrap();
            peer.read_exact(&mut word).unwrap();
            peer.write_all(b"pong").unwrap();
            client.read_exact(&mut word).unwrap();
            assert_eq!((&word, proxy.connections()), (b"pong", round));
            proxy.cut();
            assert!(matches!(client.read(&mut word), Ok(0) | Err(_)), "the client sees the end");
            assert!(matches!(peer.read(&mut word), Ok(0) | Err(_)), "and so does the server");
            let mut refused = TcpStream::connect(proxy.address).unwrap();
            wait_for(|| matches!(refused.read(&mut word), Ok(0) | Err(_)).then_some(()));
            proxy.restore();
        }
    }
}
