//! Takes the packets of rings: in order, each once, and only if it fits after the previous one. It has two callers.
//!
//! ```text
//!   remote   a running process: packets that it closed, until it ends ───┐
//!                                                                        ├─▶ Position ─▶ RingEnd ─▶ account
//!   recover  a dead process: packets kept by its sinks, then its rings ──┘
//! ```
//!
//! [`Position`] records how far a stream was taken, and checks the next packet against that; [`Walker`] counts the records in it.
//! [`RingEnd`] reconciles the counters of a ring with the packets, and [`AccountBuilder`] adds the rings up.

mod account_builder;
mod journal;
mod position;
mod reconcile;
mod ring_end;
mod walker;

pub(crate) use account_builder::AccountBuilder;
pub(crate) use journal::Journal;
pub(crate) use position::{NextPacket, Position};
pub(crate) use reconcile::RingAccounting;
pub(crate) use ring_end::{RingEnd, StreamEnd};
pub(crate) use walker::{Walker, check_layout};
