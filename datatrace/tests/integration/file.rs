//! The bytes of dt files: any sequence of calls, interrupted by a kill or a full disk anywhere; and arbitrary bytes that are not a dt file.

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
