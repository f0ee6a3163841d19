//! A server on a thread of its own, behind a bad network.

use crate::read::link::{Faults, Link};
use crate::read::server::{Plan, Server};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub struct Serving {
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Server>,
}

impl Serving {
    /// Starts serving.
    pub fn start(seed: u64, plan: Plan, faults: [Faults; 2]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let (thread_stop, server) = (Arc::clone(&stop), Server::new(seed, plan));
        let thread = thread::spawn(move || serve(&socket, server, seed, faults, &thread_stop));
        Self { port, stop, thread }
    }

    /// Ends the server, and returns it with its log.
    pub fn end(self) -> Server {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }

    /// Waits until the server has ended the session of its client.
    pub fn wait(self) -> Server {
        self.thread.join().unwrap()
    }
}

fn serve(socket: &UdpSocket, mut server: Server, seed: u64, faults: [Faults; 2], stop: &AtomicBool) -> Server {
    let [mut there, mut back] = faults.map(|faults| Link::new(seed, faults));
    let mut client: Option<SocketAddr> = None;
    let mut buffer = vec![0; 1 << 16];
    let epoch = Instant::now();
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let mut busy = false;
    while !stop.load(Ordering::Relaxed) && (!busy || !server.is_idle()) {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            client = Some(from);
            there.send(&buffer[..length], epoch.elapsed());
        }
        let now = epoch.elapsed();
        while let Some(datagram) = there.take(now) {
            server.receive(&datagram, now);
        }
        server.wake(now);
        busy |= !server.is_idle();
        while let Some(datagram) = server.outgoing() {
            back.send(&datagram, now);
        }
        while let Some(datagram) = back.take(now) {
            // The client may have ended.
            let _ = socket.send_to(&datagram, client.unwrap());
        }
    }
    server
}
