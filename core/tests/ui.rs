//! Each misuse of the macros, and its message. Here and not beside the facade, because messages depend on the types of all
//! dependencies, and the workspace builds the facade with all features.
//!
//! `TRYBUILD=overwrite` rewrites the expected messages: review the difference.

#[test]
fn compile_errors_of_misuse() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
