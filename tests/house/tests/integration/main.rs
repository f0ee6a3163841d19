//! The structure of the workspace.
#![forbid(unsafe_code)]

mod circles;
mod dependencies;
mod fast_path;
mod size;
