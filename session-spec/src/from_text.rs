//! Conversions from texts, for types that can be parsed.

/// Implements `TryFrom` for texts by `FromStr`, so that a function takes a value or its text.
macro_rules! try_from_text {
    ($type:ty, $error:ty) => {
        try_from_text!(@ $type, $error, &str, String, &String);
    };
    (@ $type:ty, $error:ty, $($text:ty),*) => {$(
        impl TryFrom<$text> for $type {
            type Error = $error;

            fn try_from(text: $text) -> Result<Self, $error> {
                text.parse()
            }
        }
    )*};
}

pub(crate) use try_from_text;
