//! The structure of the workspace.
#![forbid(unsafe_code)]

mod circles;
mod debug;
mod dependencies;
mod errors;
mod facade;
mod fast_path;
mod scripts;
mod size;
mod test_sets;
mod walks;
mod words;
