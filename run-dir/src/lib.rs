//! The files that traced processes and controllers share, and the locks on them. Internal to [`tracepoint`](https://docs.rs/tracepoint); no
//! stable API.
//!
//! There is no daemon: processes communicate through the [run directory](RunDir) only. `docs/format-run-directory.md` describes its files.
//!
//! | module | files |
//! |---|---|
//! | [`app`] | `apps/PID-START/`: the description of a traced process; next to it its [`bell`] |
//! | [`session_dir`] | `sessions/NAME/`: the directory of a session, with a locked subdirectory for each process |
//! | [`ring_files`] | the rings of a process, mapped |
//! | [`ack`] | `acks/PID-START.json`: the state of a session in a process, with its [`Notice`]s |
//! | [`owner_pipe`] | the pipe that shows whether the owner of a session is alive |
//! | [`bandwidth`] | the token buckets that all senders share |
//! | [`clock`], [`tsc`] | the offset of the clock and its calibration, measured once per boot |
//!
//! Every directory is opened once, as a [`PrivateDir`](private_dir::PrivateDir), which checks its owner and accesses its files through the
//! open descriptor. Files are replaced atomically. A process that records creates a [`ProcessDir`](session_dir::ProcessDir) and holds its
//! lock, by which other processes recognise it as alive. If the process is killed, its files stay, up to a limit, until they are recovered
//! or removed. [`rights`] and the run directory's own checks decide which users may control which processes.
//!
//! This crate does not know what a session does: descriptions, rules and sinks belong to `tracepoint-session-spec`. Neither crate uses the
//! other.

// Allowed in the modules that map ring files and statistics files, or call the C library.
#![deny(unsafe_code)]
// Code that only files use.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

pub mod ack;
#[cfg(target_os = "linux")]
pub mod app;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/bandwidth.rs")]
pub mod bandwidth;
#[cfg(target_os = "linux")]
pub mod bell;
#[cfg(target_os = "linux")]
pub mod boot_file;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/clock.rs")]
pub mod clock;
#[cfg(target_os = "linux")]
pub mod credentials;
#[cfg(target_os = "linux")]
pub mod group;
#[cfg(target_os = "linux")]
pub mod json;
pub mod layout;
#[cfg(target_os = "linux")]
pub mod local_socket;
#[cfg(target_os = "linux")]
pub mod lock;
pub mod notice;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/own_process.rs")]
pub mod own_process;
#[cfg(target_os = "linux")]
pub mod owner_pipe;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/private_dir.rs")]
pub mod private_dir;
#[cfg(target_os = "linux")]
pub mod rights;
pub mod ring_files;
mod ring_identity;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/rundir.rs")]
pub mod rundir;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/session_dir.rs")]
pub mod session_dir;
pub mod stream_status;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/tsc.rs")]
pub mod tsc;
#[cfg(target_os = "linux")]
pub mod users;

pub use ack::{Ack, AckState, Counters, OverBudget, RotationResult, RuleAck, StateDumpStatus, TriggerAck};
#[cfg(target_os = "linux")]
pub use app::{AppStatus, ApplicationInfo, ArgumentInfo, FieldInfo, TracepointInfo, TracepointKind};
#[cfg(target_os = "linux")]
pub use bandwidth::BandwidthUse;
pub use notice::Notice;
pub use private_dir::DirError;
#[cfg(target_os = "linux")]
pub use rights::Rights;
pub use rundir::{RunDir, RunDirError};
pub use session_dir::RingDirError;
pub use stream_status::StreamStatus;
