//! The maximum size of the output of a sink.

/// The maximum by default.
pub(super) const fn default_size() -> u64 {
    1 << 30
}
