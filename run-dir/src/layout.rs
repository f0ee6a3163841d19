//! The names of files and directories below the run directory.

/// The directory of all traced processes.
pub const APPS: &str = "apps";
/// The directory of all sessions.
pub const SESSIONS: &str = "sessions";

/// What a traced process is.
pub const PROCESS: &str = "process.json";
/// Its tracepoints and markers.
pub const TRACEPOINTS: &str = "tracepoints.json";
/// What is on, and how often it fired.
pub const STATUS: &str = "status.json";
/// The socket by which a controller wakes its agent.
pub const BELL: &str = "bell";

/// The description of a session.
pub const SESSION: &str = "session.toml";
/// Who changed what.
pub const LOG: &str = "log";
/// The directory of the states of its triggers.
pub const TRIGGERS: &str = "triggers";
/// Beside the rings of a process: the triggers of a session in code.
pub const TRIGGERS_FILE: &str = "triggers.toml";
/// The token bucket of senders, in a session and in the run directory.
pub const BANDWIDTH: &str = "bandwidth";
/// The directory of the rings of a session.
pub const RINGS: &str = "rings";
/// The directory of the statistics of a session.
pub const STATISTICS: &str = "statistics";
/// The end of the names of ring files.
pub(crate) const RING_SUFFIX: &str = ".ring";
