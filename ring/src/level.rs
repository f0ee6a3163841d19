//! The importance of an event: the fifteen levels of LTTng.

use std::fmt;
use std::str::FromStr;

/// The importance of an event, most important first. The numbers are LTTng's and occur in the trace's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Level {
    /// The system is unusable.
    Emerg = 0,
    /// Immediate action is required.
    Alert = 1,
    /// A critical condition.
    Crit = 2,
    /// An error.
    Err = 3,
    /// A warning.
    Warning = 4,
    /// Normal, but significant.
    Notice = 5,
    /// Informational.
    Info = 6,
    /// Debugging, scope: the system (a set of programs).
    DebugSystem = 7,
    /// Debugging, scope: the program.
    DebugProgram = 8,
    /// Debugging, scope: the process (a set of modules).
    DebugProcess = 9,
    /// Debugging, scope: the module (a set of units).
    DebugModule = 10,
    /// Debugging, scope: the compilation unit (a set of functions).
    DebugUnit = 11,
    /// Debugging, scope: the function.
    DebugFunction = 12,
    /// Debugging, scope: the line. The default, as in LTTng.
    #[default]
    DebugLine = 13,
    /// Debugging.
    Debug = 14,
}

impl Level {
    /// All levels, most important first; the index is the number.
    pub const ALL: [Self; 15] = [
        Self::Emerg,
        Self::Alert,
        Self::Crit,
        Self::Err,
        Self::Warning,
        Self::Notice,
        Self::Info,
        Self::DebugSystem,
        Self::DebugProgram,
        Self::DebugProcess,
        Self::DebugModule,
        Self::DebugUnit,
        Self::DebugFunction,
        Self::DebugLine,
        Self::Debug,
    ];

    /// The name in `#[level(…)]`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emerg => "Emerg",
            Self::Alert => "Alert",
            Self::Crit => "Crit",
            Self::Err => "Err",
            Self::Warning => "Warning",
            Self::Notice => "Notice",
            Self::Info => "Info",
            Self::DebugSystem => "DebugSystem",
            Self::DebugProgram => "DebugProgram",
            Self::DebugProcess => "DebugProcess",
            Self::DebugModule => "DebugModule",
            Self::DebugUnit => "DebugUnit",
            Self::DebugFunction => "DebugFunction",
            Self::DebugLine => "DebugLine",
            Self::Debug => "Debug",
        }
    }
}

/// Additional names of levels, from `log`, `tracing` and syslog.
const OTHER_NAMES: [(&str, Level); 5] = [
    ("error", Level::Err),
    ("warn", Level::Warning),
    ("trace", Level::Debug),
    ("critical", Level::Crit),
    ("emergency", Level::Emerg),
];

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is not the name of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLevelError(String);

impl fmt::Display for ParseLevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a level; the levels are", self.0)?;
        for (i, level) in Level::ALL.iter().enumerate() {
            write!(f, "{} {level}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("; `error` and `warn` are other names of Err and Warning")
    }
}

impl std::error::Error for ParseLevelError {}

impl FromStr for Level {
    type Err = ParseLevelError;

    /// Parses a name in any case, with or without underscores: `Info`, `info`, `DEBUG_LINE`; or a name that other libraries and syslog use for
    /// a level: `error`, `warn`, `critical`, `emergency`, `trace`.
    fn from_str(text: &str) -> Result<Self, ParseLevelError> {
        let plain: String = text.chars().filter(|c| *c != '_').collect();
        let named = Self::ALL.into_iter().map(|level| (level.name(), level));
        named
            .chain(OTHER_NAMES)
            .find(|(name, _)| name.eq_ignore_ascii_case(&plain))
            .map(|(_, level)| level)
            .ok_or_else(|| ParseLevelError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_names_of_other_libraries_too() {
        for level in Level::ALL {
            assert_eq!(level.name().to_ascii_lowercase().parse(), Ok(level));
        }
        for (text, level) in [
            ("warn", Level::Warning),
            ("WARN", Level::Warning),
            ("error", Level::Err),
            ("Critical", Level::Crit),
            ("emergency", Level::Emerg),
            ("trace", Level::Debug),
            ("DEBUG_LINE", Level::DebugLine),
        ] {
            assert_eq!(text.parse(), Ok(level), "{text}");
        }
        let error = "warnings".parse::<Level>().unwrap_err().to_string();
        assert!(error.contains("`error` and `warn`"), "{error}");
    }
}
