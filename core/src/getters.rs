//! Getters of declared properties.

/// Makes a getter of each line: its documentation, its name, which is that of a field of the given structure, and its type.
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
