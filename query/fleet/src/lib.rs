//! A day of a fleet, by simulation and on paper: hosts whose services are traced, the network, brokers or collectors, the store, and a reader of it.
//!
//! [`Chain`] runs real programs on this machine: on each host `tracectl record` with a program of three [services](day), which fire the events of a
//! [`Day`]; `tracectl collect`, in front of which `nats-server`s may be; the store, and `DuckDB`, which counts what is there. [`Balance`] compares that with the
//! accounts of the senders. [`Plan`] computes what fleets of other sizes need from the [`Figures`] that were measured so.

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
pub use programs::{Running, tracectl};

/// What a step of the chain gives, or why it failed.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
