//! The compile error of each misuse of the macros. `TRYBUILD=overwrite` rewrites the expected messages: review the difference.

#[test]
fn every_misuse_has_its_message() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
