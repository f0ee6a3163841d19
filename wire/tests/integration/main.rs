//! Messages byte for byte, written from the tables of their formats or recorded from stock programs.
#![forbid(unsafe_code)]

mod live;
mod udp;
