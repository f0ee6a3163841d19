//! The tests of dt files and romfiles.

#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;

mod cut_off;
mod file;
mod fork;
mod format;
mod object;
mod romfile;
