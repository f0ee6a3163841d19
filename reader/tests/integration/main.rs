//! The tests of the reader. Nothing here shares any state.
#![forbid(unsafe_code)]

#[path = "../hand/mod.rs"]
mod hand;
#[path = "../ring_file/mod.rs"]
mod ring_file;
#[path = "../../../tests/support/seed.rs"]
mod seed;

mod clocks;
mod compact;
mod dt_hostile;
mod follow;
mod foreign;
mod golden;
mod golden_by_hand;
mod hostile;
mod live;
mod loss;
mod lttng;
mod parallel;
mod recover;
mod recover_random;
mod ring;
mod ring_counts;
mod text;
mod udp;
mod verify;
