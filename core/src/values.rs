//! What types have to be for the macros.

use tracepoint_ring::field::{FieldType, Scalar};

/// The bound on a tracepoint's argument: every probe gets a copy.
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

/// The bound on what `trace!` fires, by which the use of it with a span is an error. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Span}` is a span, and `trace!` fires events",
    label = "begin it by `span!({Span}(…))`, and bind what that returns"
)]
pub trait IsEvent<Span> {}

/// The bound on what `span!` begins, by which the use of it with an event is an error. Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`{Event}` is an event, and `span!` begins spans",
    label = "fire it by `trace!({Event}(…))`, or declare it as `span {Event}(…)`"
)]
pub trait IsSpan<Event> {}

/// The body of functions that only a misuse calls, which does not compile.
///
/// # Panics
///
/// Always.
pub const fn misused() -> ! {
    panic!("a bound that nothing meets")
}

/// An enumeration without data, as the type of a field: `mode: enum Mode = task.mode`.
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
/// The record holds the number of the variant, in the integer that `#[repr(…)]` names, else in a `u8` if no variant has a number of its own
/// and in an `i64` if one has; the metadata holds the names. Where the library was renamed in `Cargo.toml`, `#[trace_enum(crate = name)]`
/// tells the derive macro so.
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
