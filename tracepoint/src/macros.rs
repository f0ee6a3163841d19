//! The macros as users know them. Each passes `$crate` on, the path by which the caller knows this crate.

/// Declares tracepoints.
#[macro_export]
macro_rules! define_trace {
    ($($block:tt)*) => {
        $crate::private::define_trace! { $crate, $($block)* }
    };
}

/// Marks a place in the code.
#[macro_export]
macro_rules! trace_mark {
    ($($mark:tt)*) => {
        $crate::private::trace_mark! { $crate, $($mark)* }
    };
}

/// Fires a tracepoint; evaluates the arguments only if it is on.
#[macro_export]
macro_rules! trace {
    ($($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        if $($segment)::+::__tracepoint_is_on() {
            $($segment)::+::__tracepoint_fire($($argument),*)
        }
    };
    (:: $($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        if ::$($segment)::+::__tracepoint_is_on() {
            ::$($segment)::+::__tracepoint_fire($($argument),*)
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!("`trace!` takes a call of a tracepoint: `trace!(path::to::name(argument, …))`")
    };
}
