//! The way for packets over UDP, of the collector of the tests.

use super::collector::{Files, say};
use std::collections::BTreeMap;
use std::net::{TcpStream, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracepoint_wire::stream::{Ack, AckEntry, Datagram, DatagramHeader, Nack, NackEntry, Ready, ToSender};

/// Packets of which not all has come, by handle and number: how many bytes have.
type Parts = BTreeMap<(u64, u64), (usize, Vec<u8>)>;

/// A network that loses one datagram, within the first packet of several, which is asked for when the next packet has begun.
#[derive(Default)]
pub(crate) struct Lossy {
    lost: Option<NackEntry>,
    is_asked: bool,
    /// The bytes of the next packet that had come when the datagram came again, and all that it has.
    pub(crate) interrupted: Option<(usize, usize)>,
}

impl Lossy {
    /// Whether this datagram is lost.
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

/// Puts packets together, and stores them. On the loopback interface they come in order, but for what is lost on purpose.
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
        while let Some(first) = parts.first_entry().filter(|first| first.get().0 == first.get().1.len()) {
            let (handle, next) = files.store(&first.remove().1);
            let ack = Ack { sync: 0, metadata: 0, entries: vec![AckEntry { handle, next }] };
            let _ = say(&control, &ToSender::Ack(ack));
        }
    }
}
