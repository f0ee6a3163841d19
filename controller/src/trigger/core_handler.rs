//! Checks whether the kernel reports core dumps.

use std::fs;

/// The handler of core dumps that the kernel runs.
const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// Returns whether the kernel starts `tracectl notify` when a process dumps core.
pub(super) fn has_core_handler() -> bool {
    let pattern = fs::read(CORE_PATTERN).unwrap_or_default();
    let pattern = String::from_utf8_lossy(&pattern);
    pattern.starts_with('|') && pattern.contains("notify") && pattern.contains("--core")
}
