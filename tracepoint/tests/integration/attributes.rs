//! Attributes of a tracepoint reach the items that a user sees.
#![deny(warnings)]
#![warn(missing_docs)]

/// A module of a library.
pub mod library {
    tracepoint::define_trace! {
        provider = "attributes";

        /// Old.
        #[deprecated(note = "use `new`")]
        pub old(n: u32) { n: u32 = n }

        #[allow(clippy::needless_pass_by_value)]
        pub new(n: u32) { n: u32 = n }

        #[doc(hidden)]
        pub hidden(n: u32);
    }
}

#[test]
#[expect(deprecated)]
fn deprecated() {
    tracepoint::trace!(library::old(1));
    library::trace_old(1);
}

#[test]
fn others() {
    tracepoint::trace!(library::new(1));
    tracepoint::trace!(library::hidden(1));
    assert_eq!(tracepoint::find("attributes:old").unwrap().doc(), "Old.");
}
