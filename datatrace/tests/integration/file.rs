//! The bytes of dt files: any sequence of calls, killed or out of room anywhere, and any bytes that are none.

mod full_disk;
mod golden;
mod hostile;
mod independent;
mod memory;
mod model;
mod on_disk;
mod order;
mod replaced;
mod round_trip;
mod run;
