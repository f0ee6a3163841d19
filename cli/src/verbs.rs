//! The enumeration of verbs.

/// Defines the enumeration `Verb`, in the order of `--help`, and its `run`. Each verb is a struct of its arguments with a method `run`. A verb behind
/// the name of a system is refused on other systems.
macro_rules! verbs {
    ($($($system:literal)? $verb:ident($arguments:ty),)*) => {
        #[derive(Debug, clap::Subcommand)]
        enum Verb {
            $(
                $(#[cfg(target_os = $system)])?
                $verb($arguments),
                $(
                    #[cfg(not(target_os = $system))]
                    $verb(crate::not_here::NotHere),
                )?
            )*
        }

        impl Verb {
            fn run(&self) -> crate::failure::VerbResult {
                match self {
                    $(Self::$verb(verb) => verb.run(),)*
                }
            }
        }
    };
}

pub(crate) use verbs;
