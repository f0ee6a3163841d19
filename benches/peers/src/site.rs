//! What stands in a kernel: one event, spelt the way its library wants it.

/// A way to write an event.
///
/// A kernel is compiled once for each implementation, with the event inlined into its loop: every copy is a site of its own.
pub trait Site {
    /// The event: two 32-bit numbers and a 64-bit one, made by the kernel, the same for everybody.
    fn event(a: i32, b: i32, c: i64);
}
