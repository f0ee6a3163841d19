//! The way for packets over UDP, of the collector of the tests.

use super::collector::{Files, say};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracepoint_reader::net::stream::{Ack, AckEntry, Datagram, DatagramHeader, Ready, ToSender};

/// Puts packets together, and stores them. On the loopback interface they come in order, if none is lost.
pub(super) fn serve(socket: &UdpSocket, files: &Mutex<Files>) {
    let mut buffer = vec![0; 65_536];
    let mut parts: BTreeMap<(u64, u64), (usize, Vec<u8>)> = BTreeMap::new();
    while let Ok(size) = socket.recv(&mut buffer) {
        let Datagram { header, bytes } = Datagram::decode(&buffer[..size]).expect("a datagram of ours");
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(header.token, files.token);
        let Some(control) = files.sockets.first().and_then(|socket| socket.try_clone().ok()) else { continue };
        if header.probe {
            let _ = say(&control, &ToSender::Ready(Ready::Udp));
            continue;
        }
        files.received.push((Instant::now(), size));
        let DatagramHeader { handle, seq, offset, total, .. } = header;
        let (done, packet) = parts.entry((handle, seq)).or_insert_with(|| (0, vec![0; total as usize]));
        packet[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        *done += bytes.len();
        if *done == packet.len() {
            let (_, packet) = parts.remove(&(handle, seq)).expect("it is there");
            let (handle, next) = files.store(&packet);
            let ack = Ack { sync: 0, metadata: 0, entries: vec![AckEntry { handle, next }] };
            let _ = say(&control, &ToSender::Ack(ack));
        }
    }
}
