//! The tests of sinks. Each records the markers of its own file.

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;
#[path = "../../../tests/support/seed.rs"]
mod seed;

mod ctf_directory;
mod disk_full;
mod dt_file;
mod every_type;
mod kernel;
mod rotation;
mod sink_changes;
mod stream_collector;
mod stream_relay;
mod text_live;
mod text_losses;
mod text_order;
mod udp;
mod udp_session;
