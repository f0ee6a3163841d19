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
pub mod local_socket;
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
pub mod users;

pub use ack::{Ack, AckState, Counters, OverBudget, RotationResult, RuleAck, StateDumpStatus, TriggerAck};
pub use app::{AppStatus, ApplicationInfo, ArgumentInfo, FieldInfo, TracepointInfo, TracepointKind};
pub use bandwidth::BandwidthUse;
pub use notice::Notice;
pub use private_dir::DirError;
pub use rights::Rights;
pub use rundir::{RunDir, RunDirError};
pub use session_dir::RingDirError;
pub use stream_status::StreamStatus;
