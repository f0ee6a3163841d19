//! A sender of the relay protocol: one stream, and an index for each packet, both pipelined.

use crate::Outcome;
use crate::peers::Ports;
use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_wire::Decoded;
use tracepoint_wire::relay::{
    AddStream, Command, CreateChunk, CreateSession, DataHeader, DataPending, Index, MINOR, Reply, ReturnCode, Version,
};

pub(crate) fn ask(control: &mut TcpStream, command: &Command<'_>) -> Outcome<Reply> {
    let mut bytes = Vec::new();
    command.encode(MINOR, &mut bytes);
    control.write_all(&bytes)?;
    let mut reply = Vec::new();
    loop {
        match Reply::decode(command, &reply, MINOR)? {
            Decoded::Whole(reply, _) => return Ok(reply),
            Decoded::Needs(size) => {
                let from = reply.len();
                reply.resize(size, 0);
                control.read_exact(&mut reply[from..])?;
            }
        }
    }
}

/// Sends packets of `size` bytes, until all are stored.
pub(crate) fn send(to: Ports, packets: &[u8], size: usize) -> Outcome<Duration> {
    let mut control = TcpStream::connect((Ipv4Addr::LOCALHOST, to.control))?;
    let mut data = TcpStream::connect((Ipv4Addr::LOCALHOST, to.data))?;
    control.set_nodelay(true)?;
    ask(&mut control, &Command::Version(Version { major: 2, minor: MINOR }))?;
    let session = CreateSession {
        name: "bench".into(),
        host: "host".into(),
        sender: [1; 16],
        id: 1,
        name_has_time: true,
        ..CreateSession::default()
    };
    ask(&mut control, &Command::CreateSession(session))?;
    ask(&mut control, &Command::CreateChunk(CreateChunk::default()))?;
    let add = |channel: &str| AddStream { channel: channel.into(), path: "trace".into(), ..AddStream::default() };
    let added = ask(&mut control, &Command::AddStream(add("c_0")))?;
    let Reply::Stream { handle, code: ReturnCode::Ok } = added else { return Err(format!("{added:?}").into()) };
    ask(&mut control, &Command::AddStream(add("metadata")))?;
    ask(&mut control, &Command::StreamsSent)?;
    let count = (packets.len() / size) as u64;
    let begun = Instant::now();
    let mut replies = control.try_clone()?;
    let answers = thread::spawn(move || -> std::io::Result<bool> {
        let (mut code, mut good) = ([0; 4], Vec::new());
        Reply::Code(ReturnCode::Ok).encode(MINOR, &mut good);
        for _ in 0..count {
            replies.read_exact(&mut code)?;
            if code[..] != good[..] {
                return Ok(false);
            }
        }
        Ok(true)
    });
    for (sequence, bytes) in (0..).zip(packets.chunks_exact(size)) {
        let header = DataHeader { handle, sequence, size: size as u32, ..DataHeader::default() }.encode();
        write_both(&mut data, &header, bytes)?;
        let index = Index {
            handle,
            sequence,
            packet_size: size as u64 * 8,
            content_size: size as u64 * 8,
            begin: sequence * 10,
            end: sequence * 10 + 5,
            packet_number: sequence,
            ..Index::default()
        };
        let mut command = Vec::new();
        Command::SendIndex(index).encode(MINOR, &mut command);
        control.write_all(&command)?;
    }
    if !answers.join().map_err(|_| "the thread of the answers has panicked")?? {
        return Err("an index was refused".into());
    }
    while ask(&mut control, &Command::DataPending { handle, last: count - 1 })? != Reply::Pending(DataPending::No) {
        thread::sleep(Duration::from_micros(200));
    }
    Ok(begun.elapsed())
}

/// Writes a header and a packet, with one call if the system accepts all of it.
pub(crate) fn write_both(to: &mut TcpStream, header: &[u8], bytes: &[u8]) -> std::io::Result<()> {
    let written = to.write_vectored(&[IoSlice::new(header), IoSlice::new(bytes)])?;
    to.write_all(&header[written.min(header.len())..])?;
    to.write_all(&bytes[written.saturating_sub(header.len())..])
}
