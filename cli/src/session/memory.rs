//! The memory of a session's rings on the command line.

use crate::units;
use clap::Args;
use tracepoint_session_spec::SessionSpec;

/// The size and number of rings, and their total memory.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rings and channels")]
pub(crate) struct MemoryArguments {
    /// Size of the ring of each thread [default: 1M for the first threads of a process, down to 64K if it has many]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    ring_size: Option<u64>,
    /// Maximum memory of the rings of each process. A quarter of the free memory in its cgroup and in the run directory is never used
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "128M")]
    memory: u64,
    /// Maximum memory of the rings of all processes together [default: only the limit of each process]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    memory_cap: Option<u64>,
    /// Number of rings kept ready for new threads of a process while none start [default: as many as fit into 2M, from 2 to 16]
    #[arg(long, value_name = "COUNT")]
    spares: Option<usize>,
    /// Largest number of rings of a process [default: as many as its memory can hold]
    #[arg(long, value_name = "COUNT")]
    max_rings: Option<usize>,
    /// Memory of each process for additional rings, used by threads whose own rings are full; 0 for none [default: 32M, at most 32 rings, if the
    /// newest events are lost when rings are full]
    #[arg(long, value_name = "SIZE", value_parser = units::size_or_none)]
    overflow: Option<u64>,
}

impl MemoryArguments {
    pub(crate) fn apply(&self, spec: &mut SessionSpec) {
        spec.limits.memory = self.memory;
        spec.limits.memory_cap = self.memory_cap;
        let channel = &mut spec.channel;
        [channel.ring_size, channel.overflow] =
            [self.ring_size, self.overflow].map(|size| Some(usize::try_from(size?).unwrap_or(usize::MAX)));
        (channel.spares, channel.max_rings) = (self.spares, self.max_rings);
    }
}
