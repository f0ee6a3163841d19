//! Getters of declared properties.

/// Defines a getter for each line: its documentation, its name, which is also the name of the structure's field, and its type.
macro_rules! getters {
    ($ty:ty, &$this:ident => $parts:expr; $($(#[$doc:meta])* $name:ident: $value:ty,)*) => {
        impl $ty {
            $($(#[$doc])*
            pub const fn $name(&$this) -> $value {
                $parts.$name
            })*
        }
    };
}

pub(crate) use getters;
