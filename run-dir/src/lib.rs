//! The files that traced processes and the controllers outside them share, and the locks on them. Internal to
//! [`tracepoint`](https://docs.rs/tracepoint); no stable API.
//!
//! There is no daemon: all that processes tell each other is in the [run directory](RunDir). `docs/format-run-directory.md` describes its files.
//!
//! | module | files |
//! |---|---|
//! | [`app`] | `apps/PID-START/`: what a traced process says of itself; beside it its [`bell`] |
//! | [`session_dir`] | `sessions/NAME/`: the directory of a session, and that of each process in it, with its lock |
//! | [`ring_files`] | the rings of a process, mapped, and what memory they may take |
//! | [`ack`] | `acks/PID-START.json`: what a process does for a session, with its [`Notice`]s |
//! | [`owner_pipe`] | the pipe that tells whether the owner of a session lives |
//! | [`bandwidth`] | the token buckets that all senders share |
//! | [`clock`], [`tsc`] | the offset of the clock and its calibration, measured once in a boot |
//!
//! Every directory is opened once, as a [`PrivateDir`](private_dir::PrivateDir), which checks whose it is and reaches its files through the open
//! descriptor; a file is replaced whole. A process that records makes a [`ProcessDir`](session_dir::ProcessDir) and holds its lock: others find it
//! alive by that, and what it leaves when it is killed stays, up to a limit, until somebody recovers or removes it. [`rights`] and the
//! run directory's own checks decide who may control whom.
//!
//! This crate does not know what a session does: descriptions, rules and sinks are those of `tracepoint-session-spec`, and neither crate uses the
//! other.

// Allowed in the modules that map the files of rings and of statistics.
#![deny(unsafe_code)]

pub mod ack;
pub mod app;
pub mod bandwidth;
pub mod bell;
pub mod boot_file;
pub mod clock;
pub mod credentials;
pub mod group;
pub mod json;
pub mod layout;
pub mod lock;
pub mod notice;
pub mod own_process;
pub mod owner_pipe;
pub mod private_dir;
pub mod rights;
pub mod ring_files;
mod ring_identity;
pub mod rundir;
pub mod session_dir;
pub mod stream_status;
pub mod tsc;

pub use ack::{Ack, AckState, Counters, OverBudget, Rotated, RuleAck, StateDumpStatus, TriggerAck};
pub use app::{AppStatus, ApplicationInfo, ArgumentInfo, FieldInfo, TracepointInfo, TracepointKind};
pub use bandwidth::BandwidthUse;
pub use notice::Notice;
pub use private_dir::DirError;
pub use rights::Rights;
pub use rundir::{RunDir, RunDirError};
pub use session_dir::RingDirError;
pub use stream_status::StreamStatus;
