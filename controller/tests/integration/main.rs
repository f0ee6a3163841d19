//! The tests of sessions in code together with a controller, and of all types that the crates export.
#![allow(clippy::items_after_statements, reason = "a test begins with `own_process!`, its constants come behind")]

#[path = "../../../session/tests/common/mod.rs"]
mod common;
#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;
#[path = "../../../tests/support/skip.rs"]
mod skip;

mod debug;
mod errors;
mod late_objects;
