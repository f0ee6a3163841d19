//! The files in which a traced process describes itself, in `apps/PID-START/` of the run directory.
//!
//! `docs/format-run-directory.md` describes the files. Agents write them, controllers read them; unknown members are ignored.

mod description;
mod dirs;

pub use description::{AppStatus, ApplicationInfo, ArgumentInfo, FieldInfo, TracepointInfo, TracepointKind};
pub use dirs::{is_held, key, remove, remove_stale};
