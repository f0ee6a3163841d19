//! The output of `Display` and `Debug` is bounded.

use std::fmt::{self, Display};
use tracepoint::__macro_support::{TextBuffer, debug, display};

#[test]
fn a_long_text_is_cut_at_a_character() {
    let cut = |text: &str| display(text, &mut TextBuffer::<8>::new()).0.to_owned();
    assert_eq!(cut(""), "");
    assert_eq!(cut("12345678"), "12345678");
    assert_eq!(cut("123456789"), "12345…");
    assert_eq!(cut("1234ä6789"), "1234…");
    assert_eq!(debug(&[1; 100], &mut TextBuffer::<12>::new()).0, "[1, 1, 1,…");
}

#[test]
fn parts_are_joined_and_an_error_of_the_value_keeps_what_it_wrote() {
    struct Failing;
    impl Display for Failing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("begun")?;
            Err(fmt::Error)
        }
    }
    assert_eq!(display(&format_args!("{}-{}", 1, 2), &mut TextBuffer::<8>::new()).0, "1-2");
    assert_eq!(display(&Failing, &mut TextBuffer::<8>::new()).0, "begun");
}
