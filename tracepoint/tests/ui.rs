//! Each way to misuse the macros, and the message that it gives. `TRYBUILD=overwrite` writes the messages anew: read them.

#[test]
fn every_misuse_has_its_message() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
