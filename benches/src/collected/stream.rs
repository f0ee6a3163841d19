//! A sender of the stream protocol: one stream, over TCP or UDP.

use crate::Outcome;
use crate::datagrams::{Datagrams, WINDOW};
use crate::packets::KEY;
use crate::peers::Ports;
use crate::relay::{ask, write_both};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_wire::relay::{Command, MINOR, Version};
use tracepoint_wire::stream::{
    Announce, Attach, Capabilities, DatagramHeader, FRAME_HEADER, FrameHeader, Hello, NO_SEQ, NackEntry, RecordHeader,
    Route, ToCollector, ToSender, wire_head,
};

/// A message of the collector.
enum Said {
    Welcome {
        token: [u8; 16],
        window: u64,
    },
    Announced(u64),
    Ready,
    /// Packets up to here are stored.
    Stored(u64),
    Again(NackEntry),
}

/// Passes on the messages of the collector, until it closes the connection.
fn hear(mut control: TcpStream, to: &Sender<Said>) -> Outcome {
    let mut payload = Vec::new();
    loop {
        let mut header = [0; FRAME_HEADER];
        control.read_exact(&mut header)?;
        let FrameHeader { kind, size } = FrameHeader::decode(&header).ok_or("no frame")??;
        payload.resize(size, 0);
        control.read_exact(&mut payload)?;
        match ToSender::decode(kind, &payload)? {
            ToSender::Welcome(welcome) => to.send(Said::Welcome { token: welcome.token, window: welcome.window })?,
            ToSender::Announced(announced) => to.send(Said::Announced(announced.handle))?,
            ToSender::Ready(_) => to.send(Said::Ready)?,
            ToSender::Ack(ack) => {
                ack.entries.into_iter().try_for_each(|entry| to.send(Said::Stored(entry.next)))?;
            }
            ToSender::Nack(nack) => nack.entries.into_iter().try_for_each(|entry| to.send(Said::Again(entry)))?,
            ToSender::Error(_, text) => return Err(text.into()),
            _ => {}
        }
    }
}

fn say(control: &mut TcpStream, message: &ToCollector<'_>) -> Outcome {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    Ok(control.write_all(&bytes)?)
}

/// The next message that is not about packets.
fn next(said: &Receiver<Said>) -> Outcome<Said> {
    Ok(said.recv_timeout(Duration::from_secs(10))?)
}

enum Data {
    Tcp(TcpStream),
    Udp(Datagrams),
}

impl Data {
    fn packet(&mut self, handle: u64, seq: u64, packet: &[u8], part: Option<(u32, u32)>) -> Outcome {
        match self {
            Self::Udp(datagrams) => datagrams.packet(seq, packet, part),
            Self::Tcp(stream) => {
                let prev_seq = seq.checked_sub(1).unwrap_or(NO_SEQ);
                let head = wire_head(packet, Route { handle, seq, prev_seq, circuit_id: 0 });
                let head = head.ok_or("a packet is too short")?;
                let size = (head.len() + packet.len() - 32) as u32;
                let head = [&RecordHeader { size }.encode()[..], &head].concat();
                Ok(write_both(stream, &head, &packet[32..])?)
            }
        }
    }
}

/// Sends packets of `size` bytes, until all are stored; over UDP in datagrams of `mtu` bytes.
pub(crate) fn send(to: Ports, packets: &[u8], size: usize, mtu: Option<usize>) -> Outcome<Duration> {
    let mut control = TcpStream::connect((Ipv4Addr::LOCALHOST, to.control))?;
    control.set_nodelay(true)?;
    ask(&mut control, &Command::Version(Version { major: 2, minor: MINOR }))?;
    let flags = Capabilities::new(mtu.is_some(), false).flags();
    ask(&mut control, &Command::GetConfiguration { flags })?;
    let (sender, said) = channel();
    let listener = control.try_clone()?;
    // The thread ends with the connection, and the collector is killed after the last packet.
    thread::spawn(move || drop(hear(listener, &sender)));
    let hello = Hello {
        version: 1,
        udp: mtu.is_some(),
        key: [7; 16],
        trace: [9; 16],
        clock: [0; 16],
        nonce: [3; 32],
        sync_interval: 1000,
        mtu: mtu.unwrap_or(1400) as u32,
        resend_buffer: packets.len() as u64,
        host: "host",
        session: "bench",
        process: "sender-1-1",
    };
    say(&mut control, &ToCollector::Hello(hello))?;
    let Said::Welcome { token, window } = next(&said)? else { return Err("no welcome".into()) };
    let names = ["host", "bench", "sender-1-1", "c", "c_0"];
    let (class, instance) = KEY;
    say(&mut control, &ToCollector::Announce(Announce { request: 1, class, instance, packet_size: 1 << 20, names }))?;
    let (mut handle, mut is_ready, mut data) = (None, false, None);
    while handle.is_none() || !is_ready {
        if let (None, Some(handle)) = (&data, handle) {
            data = Some(match mtu {
                None => {
                    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, to.data))?;
                    stream.write_all(&Attach { token }.encode())?;
                    Data::Tcp(stream)
                }
                Some(mtu) => {
                    let datagrams = Datagrams::new(to.data, token, handle, mtu)?;
                    datagrams.socket.send(&DatagramHeader::probe(token).encode())?;
                    Data::Udp(datagrams)
                }
            });
        }
        match next(&said)? {
            Said::Announced(number) => handle = Some(number),
            Said::Ready => is_ready = true,
            _ => {}
        }
    }
    let (mut data, handle) = data.zip(handle).ok_or("there is no data connection")?;
    let window = if mtu.is_some() { WINDOW } else { window };
    let count = (packets.len() / size) as u64;
    let (mut sent, mut stored) = (0, 0);
    let begun = Instant::now();
    while stored < count {
        let may_send = sent < count && (sent - stored) * (size as u64) < window;
        let said = if may_send { said.try_recv().ok() } else { Some(next(&said)?) };
        match said {
            Some(Said::Stored(next)) => stored = stored.max(next),
            Some(Said::Again(entry)) => {
                for seq in entry.first..=entry.last.min(count - 1) {
                    let part = (entry.length > 0).then_some((entry.offset, entry.length));
                    data.packet(handle, seq, &packets[seq as usize * size..][..size], part)?;
                }
            }
            None if may_send => {
                data.packet(handle, sent, &packets[sent as usize * size..][..size], None)?;
                sent += 1;
            }
            _ => {}
        }
    }
    Ok(begun.elapsed())
}
