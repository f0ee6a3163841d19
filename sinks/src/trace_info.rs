//! What a sink is told about a trace before its first packet.

/// A trace: one recording of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceInfo {
    /// Tells the trace from all others; stands in every packet.
    pub uuid: [u8; 16],
    /// The name under which it is recorded.
    pub name: String,
    /// The clock of its times.
    pub clock: ClockInfo,
    /// The process whose events these are.
    pub process: ProcessInfo,
}

/// The clock: it counts nanoseconds. The default is a clock of the program's own, of which nothing is known: its times can be
/// compared with each other, and with those of no other trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockInfo {
    /// Tells clocks apart that count from different zeros: the boot id. `None` if it is not known.
    pub uuid: Option<[u8; 16]>,
    /// The distance of the clock's zero from 1970-01-01 00:00 UTC, in nanoseconds.
    pub offset: i64,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its id, as it sees it itself.
    pub pid: u32,
    /// Its short name, as `ps` shows it.
    pub name: String,
    /// The path of its program; empty if it is not known.
    pub executable: String,
    /// The machine's name.
    pub hostname: String,
}
