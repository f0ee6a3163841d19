//! The memory of a session's rings on the command line.

use crate::units;
use clap::Args;
use tracepoint_control::SessionSpec;

/// The size and number of rings, and what they may take together.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rings and channels")]
pub(crate) struct MemoryArguments {
    /// Size of the ring of each thread [default: 1M for the first threads of a process, down to 64K where it has many]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    ring_size: Option<u64>,
    /// Most memory that the rings of each process take. A quarter of what is free in its cgroup and in the run directory stays free in any case
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "128M")]
    memory: u64,
    /// Most memory that the rings of all processes take together [default: no limit but that of each process]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    memory_cap: Option<u64>,
    /// Number of rings that are kept ready for new threads of a process while none appear [default: as many as fit into 2M, from 2 to 16]
    #[arg(long, value_name = "COUNT")]
    spares: Option<usize>,
    /// Largest number of rings of a process [default: as many as its memory holds]
    #[arg(long, value_name = "COUNT")]
    max_rings: Option<usize>,
    /// Memory of each process for further rings, in which threads go on whose own are full; 0 for none [default: 32M, at most 32 rings, if the newest
    /// events are lost when rings are full]
    #[arg(long, value_name = "SIZE", value_parser = units::size_or_none)]
    overflow: Option<u64>,
}

impl MemoryArguments {
    /// Sets the limits and the default channel of a session.
    pub(crate) fn apply(&self, spec: &mut SessionSpec) {
        spec.limits.memory = self.memory;
        spec.limits.memory_cap = self.memory_cap;
        let channel = &mut spec.channel;
        [channel.ring_size, channel.overflow] =
            [self.ring_size, self.overflow].map(|size| Some(usize::try_from(size?).unwrap_or(usize::MAX)));
        (channel.spares, channel.max_rings) = (self.spares, self.max_rings);
    }
}
