//! A simulated network between two processes.

use crate::read::link::{Faults, Link};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Carries datagrams between a server and its client as long as the program runs. Each direction has its own faults.
pub fn network(server: SocketAddr, seed: u64, faults: [Faults; 2]) -> u16 {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = front.local_addr().unwrap().port();
    thread::spawn(move || {
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        back.set_nonblocking(true).unwrap();
        front.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let (mut there, mut home) = (Link::new(seed, faults[0]), Link::new(seed + 1, faults[1]));
        let (epoch, mut client, mut buffer) = (Instant::now(), None, vec![0; 1 << 16]);
        loop {
            if let Ok((length, from)) = front.recv_from(&mut buffer) {
                client = Some(from);
                there.send(&buffer[..length], epoch.elapsed());
            }
            while let Ok(length) = back.recv(&mut buffer) {
                home.send(&buffer[..length], epoch.elapsed());
            }
            while let Some(datagram) = there.take(epoch.elapsed()) {
                // The receiver may have ended.
                let _ = back.send(&datagram);
            }
            while let Some(datagram) = home.take(epoch.elapsed()) {
                let _ = client.map(|client| front.send_to(&datagram, client));
            }
        }
    });
    port
}
