//! Messages byte for byte, written from the tables of their formats or recorded from LTTng's programs and babeltrace2.
#![forbid(unsafe_code)]

mod live;
mod udp;
