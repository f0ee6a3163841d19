//! The enumeration of verbs.

/// Defines the enumeration `Verb`, in the order of `--help`, and its `run`. Each verb is a struct of its arguments with a method `run`.
macro_rules! verbs {
    ($($verb:ident($arguments:ty),)*) => {
        #[derive(Debug, clap::Subcommand)]
        enum Verb {
            $($verb($arguments),)*
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
