//! The event in a kernel, written in the syntax of its library.

/// A way to write an event.
///
/// A kernel is compiled once for each implementation, with the event inlined into its loop: each copy has its own site.
pub trait Site {
    /// The event: two 32-bit numbers and a 64-bit one, which the kernel computes in the same way for all libraries.
    fn event(a: i32, b: i32, c: i64);
}
