//! The names of files and directories below the run directory.

/// The directory of all traced processes.
pub const APPS: &str = "apps";
/// The directory of all sessions.
pub const SESSIONS: &str = "sessions";

/// The description of a traced process.
pub const PROCESS: &str = "process.json";
/// Its tracepoints and markers.
pub const TRACEPOINTS: &str = "tracepoints.json";
/// The enabled tracepoints, and how often they fired.
pub const STATUS: &str = "status.json";
/// The socket of its agent: a controller wakes the agent by it.
pub const BELL: &str = "bell";

/// The description of a session.
pub const SESSION: &str = "session.toml";
/// The log of changes: who changed what.
pub const LOG: &str = "log";
/// The directory of the states of its triggers.
pub const TRIGGERS: &str = "triggers";
/// The triggers of a session in code, next to the rings of a process.
pub const TRIGGERS_FILE: &str = "triggers.toml";
/// The token bucket of senders, in a session and in the run directory.
pub const BANDWIDTH: &str = "bandwidth";
/// The directory of the rings of a session.
pub const RINGS: &str = "rings";
/// The directory of the statistics of a session.
pub const STATISTICS: &str = "statistics";
/// The suffix of the names of ring files.
pub(crate) const RING_SUFFIX: &str = ".ring";
