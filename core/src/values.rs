//! Requirements of the macros on types.

use tracepoint_ring::field::{FieldType, Scalar};

/// The bound on a tracepoint's argument: every probe receives a copy.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tracepoint: it is not `Copy`",
    label = "not `Copy`",
    note = "every probe gets the argument: take it by reference, `&{Self}`"
)]
pub trait ByValue {}

impl<T: Copy> ByValue for T {}

/// Checks an argument's type.
#[inline(always)]
pub const fn by_value<T: ByValue>() {}

/// The bound on the operand of `trace!`, which makes its use with a span an error. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Span}` is a span, and `trace!` fires events",
    label = "begin it by `span!({Span}(…))`, and bind what that returns"
)]
pub trait IsEvent<Span> {}

/// The bound on the operand of `span!`, which makes its use with an event an error. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Event}` is an event, and `span!` begins spans",
    label = "fire it by `trace!({Event}(…))`, or declare it as `span {Event}(…)`"
)]
pub trait IsSpan<Event> {}

/// The body of functions that are called only by incorrect code, which does not compile.
///
/// # Panics
///
/// Always.
pub const fn misused() -> ! {
    panic!("a bound that nothing meets")
}

/// An enumeration without data, used as a field type: `mode: enum Mode = task.mode`.
///
/// ```
/// #[derive(tracepoint::TraceEnum, Clone, Copy)]
/// enum Mode {
///     Idle,
///     Run,
/// }
///
/// tracepoint::define_trace! {
///     provider = "doc";
///     switched(mode: Mode) { mode: enum Mode = mode }
/// }
/// tracepoint::trace!(switched(Mode::Run));
/// ```
///
/// The record holds the number of the variant. Its type is the integer in `#[repr(…)]`; by default `u8` if no variant has an explicit number, and
/// `i64` otherwise. The metadata holds the names. If the library was renamed in `Cargo.toml`, pass the name to the derive macro by
/// `#[trace_enum(crate = name)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be recorded as an enumeration",
    label = "does not implement `TraceEnum`",
    note = "add `#[derive(tracepoint::TraceEnum)]` to `{Self}`"
)]
pub trait TraceEnum {
    /// The integer in the record.
    type Repr: Scalar;
    /// The type of the field: the integer and the names of its values.
    const TYPE: FieldType;
    /// The number of the variant.
    fn repr(&self) -> Self::Repr;
}
