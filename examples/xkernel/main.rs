//! A small protocol stack in the style of the x-kernel: two hosts communicate by UDP and TCP over a link that loses packets. Each protocol is
//! traced if the romfile says so, and its counters are appended to its trace.
//!
//! `cargo run --example xkernel [-- ROMFILE [DIRECTORY [SEED]]]`

#![forbid(unsafe_code)]

mod host;
mod link;
mod protocol;
mod wire;

use anyhow::{Result, ensure};
use host::{Host, Stack};
use link::Link;
use protocol::Protocol;
use std::path::{Path, PathBuf};

const ROMFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/xkernel/rom");
const HOSTS: [u32; 2] = [0x0A00_0001, 0x0A00_0002];
/// The data sent by each host.
const DATAGRAMS: u32 = 200;
const BYTES: usize = 200_000;
/// An upper bound that no run reaches.
const MAX_TICKS: u32 = 100_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let romfile = arguments.next().unwrap_or_else(|| ROMFILE.to_owned());
    let directory = match arguments.next() {
        Some(directory) => PathBuf::from(directory),
        None => tempfile::Builder::new().prefix("xkernel-").tempdir()?.keep(),
    };
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let outcome = run(romfile.as_ref(), &directory, seed);
    // Keep traced entries in every case.
    datatrace::close_all()?;
    outcome?;
    println!("traces in {}; for one of them: tracectl dt dump {0}/FILE.dt", directory.display());
    Ok(())
}

fn run(romfile: &Path, directory: &Path, seed: u64) -> Result<()> {
    let protocol = |name, format| Protocol::new(name, format, romfile, directory);
    let stack = Stack {
        ip: protocol("ip", "tick:u32 way:u8 src:u32/x dst:u32/x proto:u8 len:u16")?,
        udp: protocol("udp", "tick:u32 way:u8 src:u16 dst:u16 len:u16")?,
        tcp: protocol("tcp", "tick:u32 way:u8 host:u32/x seq:u32 ack:u32 flags:u8/x len:u16")?,
    };
    let data = |host: usize| -> Vec<u8> { (0..BYTES).map(|n| (n * (host + 3) / 7) as u8).collect() };
    let [one, other] = HOSTS;
    let mut hosts = [Host::new(&stack, one, other, data(0)), Host::new(&stack, other, one, data(1))];
    // Link n delivers the packets that host n receives.
    let mut links = [Link::new(seed), Link::new(seed.wrapping_mul(0x9E37_79B9))];
    let mut tick = 0;
    while tick < DATAGRAMS || !hosts.iter().all(Host::is_done) || !links.iter().all(Link::is_empty) {
        ensure!(tick < MAX_TICKS, "the hosts talk for ever");
        for (n, host) in hosts.iter_mut().enumerate() {
            while let Some(packet) = links[n].receive(tick) {
                host.receive(tick, &packet, &mut links[1 - n])?;
            }
            host.send_segment(tick, &mut links[1 - n])?;
            if tick < DATAGRAMS {
                host.send_datagram(tick, tick, &mut links[1 - n])?;
            }
        }
        tick += 1;
    }
    for (n, host) in hosts.iter().enumerate() {
        ensure!(host.incoming == data(1 - n), "host {n} received other bytes than were sent");
        ensure!(host.datagrams.is_sorted(), "host {n} received datagrams out of order");
    }
    report(&stack, &links, tick)
}

fn report(stack: &Stack, links: &[Link], ticks: u32) -> Result<()> {
    let lost: u64 = links.iter().map(|link| link.lost).sum();
    let damaged: u64 = links.iter().map(|link| link.damaged).sum();
    let Stack { ip, udp, tcp } = stack;
    println!("{ticks} ticks; the links lost {lost} packets and damaged {damaged}");
    for (name, protocol) in [("ip", ip), ("udp", udp), ("tcp", tcp)] {
        let [sent, received, damaged] = ["sent", "received", "damaged"].map(|what| protocol.counter(what));
        println!("{name}: sent {sent}, received {received}, found {damaged} damaged");
    }
    println!(
        "tcp: sent {} segments again, received {} twice",
        tcp.counter("sent again"),
        tcp.counter("received twice")
    );
    let accounted = ip.counter("received") + ip.counter("damaged") + lost;
    ensure!(
        ip.counter("sent") == accounted,
        "{} packets were sent, and {accounted} received or lost",
        ip.counter("sent")
    );
    Ok(())
}
