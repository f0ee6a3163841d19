//! The UDP transport of the test collector.

use super::collector::{Files, say};
use std::collections::BTreeMap;
use std::net::{TcpStream, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracepoint_wire::stream::{Ack, AckEntry, Datagram, DatagramHeader, Nack, NackEntry, Ready, ToSender};

/// Incomplete packets, by handle and number: the number of bytes that have arrived, and the bytes.
type Parts = BTreeMap<(u64, u64), (usize, Vec<u8>)>;

/// A network that loses one datagram, within the first packet of several, which is requested when the next packet has begun.
#[derive(Default)]
pub(crate) struct Lossy {
    lost: Option<NackEntry>,
    is_asked: bool,
    /// Number of bytes of the next packet that had arrived before the retransmission, and its size.
    pub(crate) interrupted: Option<(usize, usize)>,
}

impl Lossy {
    /// Returns whether this datagram is lost.
    fn loses(&mut self, header: &DatagramHeader, length: usize, parts: &Parts, control: &TcpStream) -> bool {
        let DatagramHeader { handle, seq, offset, again, .. } = *header;
        if again {
            let other = parts.iter().find(|(key, _)| **key != (handle, seq));
            self.interrupted = other.map(|(_, (done, packet))| (*done, packet.len()));
        }
        let Some(lost) = self.lost else {
            if offset > 0 {
                self.lost = Some(NackEntry { handle, first: seq, last: seq, offset, length: length as u32 });
            }
            return offset > 0;
        };
        if seq > lost.first && !self.is_asked {
            self.is_asked = true;
            let _ = say(control, &ToSender::Nack(Nack { entries: vec![lost] }));
        }
        false
    }
}

/// Reassembles packets and stores them. On the loopback interface they arrive in order, except those lost on purpose.
pub(super) fn serve(socket: &UdpSocket, files: &Mutex<Files>) {
    let mut buffer = vec![0; 65_536];
    let mut parts = Parts::new();
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
        if files.lossy.as_mut().is_some_and(|lossy| lossy.loses(&header, bytes.len(), &parts, &control)) {
            continue;
        }
        let (done, packet) = parts.entry((handle, seq)).or_insert_with(|| (0, vec![0; total as usize]));
        packet[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        *done += bytes.len();
        files.begun = Some((handle, seq));
        while let Some(first) = parts.first_entry().filter(|first| first.get().0 == first.get().1.len()) {
            let (handle, next) = files.store(&first.remove().1);
            let ack = Ack { sync: 0, metadata: 0, entries: vec![AckEntry { handle, next }] };
            let _ = say(&control, &ToSender::Ack(ack));
        }
    }
}
