//! The helper that the kernel starts for each process that dumps core, and its installation in `core_pattern` (`man 5 core`).
//!
//! ```text
//!  kernel ──▶ helper: root, core image on its standard input
//!               │ starts ──────────▶ child
//!               │                     reads /proc/PID, takes its root directory, user and groups
//!               │ ◀─────── "ready" ── (at most 5 s)
//!               │ core image: to the                  fires the triggers: snapshots of the rings
//!               │ former handler, into a file,        │
//!               │ or read and thrown away             │
//!               │ ◀────────────── ends ────────────── (at most 120 s)
//! ```
//!
//! **Order.** The process exists until its core image has been read, also with `core_pipe_limit` 0, if the image does not fit into a pipe
//! (64 KiB). Therefore the required data in `/proc` are read first. For a process that has ended nevertheless, the child looks in its
//! user's usual run directory. The rings are files and do not need the process.
//!
//! **Rights.** The helper has all rights, and all its other inputs are controlled by the user of the process: names, the environment, the
//! run directory, the rings. Only the helper itself stays root, and it uses none of these inputs. The child reads four files of `/proc` as
//! root, because those of set-user-id programs cannot be read otherwise. Then it changes to the root directory of the process if that
//! differs, takes user, group and supplementary groups, and gives up the ability to get other rights. Only then does it open the run
//! directory, with the same checks as any controller of that user. It runs the same program, without its environment.
//!
//! **Failures** are returned to the caller, which writes them to the kernel's log, and stored in the state of the trigger.

mod arguments;
mod config;
mod dumper;
mod helper;
mod install;
mod pattern;

pub use arguments::{CoreArguments, CoreArgumentsError};
pub use helper::{HelperReport, act_as_dumper, log_to_kernel, run_helper};
pub use install::{CoreHandler, CoreHandlerError, CoreHandlerOptions, PatternChange};
pub use pattern::PatternError;
