//! The commands of the README and of the pages in `docs/`, exactly as written there.
#![forbid(unsafe_code)]

#[path = "../../../tests/support/skip.rs"]
mod skip;

mod commands;
mod descriptions;
mod from_other_tools;
mod pages;
mod program;
