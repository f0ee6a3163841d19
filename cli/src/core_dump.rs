//! The helper for processes that dump core, and its installation.

pub(crate) mod install;
pub(crate) mod notify;
