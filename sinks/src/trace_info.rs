//! Descriptions of a trace, its clock and its process.

/// A trace: one recording of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceInfo {
    /// The UUID of the trace. Every packet contains it.
    pub uuid: [u8; 16],
    /// The name of the session.
    pub name: String,
    /// The clock of the timestamps.
    pub clock: ClockInfo,
    /// The traced process.
    pub process: ProcessInfo,
}

/// A clock that counts nanoseconds. The default is a clock of the program: its timestamps cannot be compared with those of other traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockInfo {
    /// The boot id: clocks with the same UUID count from the same zero. `None` if it is unknown.
    pub uuid: Option<[u8; 16]>,
    /// The offset of the clock's zero from 1970-01-01 00:00 UTC, in nanoseconds.
    pub offset: i64,
}

/// The traced process, or a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The process id, in its own pid namespace.
    pub pid: u32,
    /// The short name, as shown by `ps`.
    pub name: String,
    /// The path of the program; empty if it is unknown.
    pub executable: String,
    /// The host name.
    pub hostname: String,
    /// The mapped code, if a channel records call stacks, each as `START-END OFFSET BUILD-ID PATH`; numbers in base 16, `-` for a file without a
    /// build id.
    pub modules: Vec<String>,
    /// The release of the kernel whose own events are in the trace, one stream per CPU. Empty for a process, whose streams belong to threads; for a
    /// kernel, `pid`, `name` and `executable` mean nothing.
    pub kernel: String,
}
