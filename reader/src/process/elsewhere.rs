//! The counterpart on systems without Linux's `/proc`, where nothing is known of processes.

/// Returns 0: the start time of this process is unknown.
pub const fn started() -> u64 {
    0
}

/// Returns `None`: no process is known.
pub const fn started_at(_pid: u32) -> Option<u64> {
    None
}

/// Returns `None`: no process is known.
pub const fn exit_status(_stat: &[u8], _started: u64) -> Option<i32> {
    None
}

/// Returns `false`: no process is known.
pub const fn exists(_pid: u32, _started: u64) -> bool {
    false
}

/// Returns 0: there are no pid namespaces.
pub const fn pid_namespace() -> u64 {
    0
}

/// Returns 0: there are no pid namespaces.
pub const fn own_pid_namespace() -> u64 {
    0
}
