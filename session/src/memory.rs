//! The limits on the memory of rings and statistics.

mod headroom;
mod process_memory;
mod session_memory;

pub(crate) use process_memory::ProcessMemory;
pub(crate) use session_memory::SessionMemory;
