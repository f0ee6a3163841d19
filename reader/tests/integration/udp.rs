//! The client of the UDP trace server, against a server written only from the tables of `docs/format-udp.md`, over faulty networks, in
//! simulated time.
#![expect(unreachable_pub, reason = "modules of a test are no crate")]

mod accounting;
mod conversations;
mod directory;
mod ends;
mod link;
mod network_faults;
mod original;
mod random_faults;
mod server;
mod simulation;
mod trace;
