//! Simulates and extrapolates a day of a fleet: hosts with traced services, the network, brokers or collectors, the store, and a reader of the store.
//!
//! [`Chain`] runs real programs on this machine: on each host `tracectl record` with a program of three [services](day), which fire the events of a
//! [`Day`]; `tracectl collect`, optionally behind a cluster of `nats-server`s; the store; and `DuckDB`, which counts its rows. [`Balance`] compares
//! these counts with the senders' accounts. [`Plan`] extrapolates the measured [`Figures`] to fleets of other sizes.
//!
//! The figures of `docs/fleet.md` are from the program `tracepoint-fleet` of this crate.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures for people, and rates that are positive"
)]

mod balance;
mod brokers;
mod chain;
pub mod day;
mod figures;
mod plan;
mod programs;
pub mod services;

pub use balance::{Balance, Counts};
pub use chain::{Chain, Host, Settings, Transport};
pub use day::Day;
pub use figures::Figures;
pub use plan::Plan;
pub use programs::{ChildProgram, tracectl};

/// The result of a step of the chain.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
