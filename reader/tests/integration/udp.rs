//! The client of the UDP trace server, against a server that was written from the tables of `docs/format-udp.md` alone, on bad networks, in
//! a time of their own.
#![expect(unreachable_pub, reason = "modules of a test are no crate")]

mod accounting;
mod conversations;
mod directory;
mod ends;
mod link;
mod server;
mod trace;
mod weather;
mod world;
