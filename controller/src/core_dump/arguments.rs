//! The arguments by which the kernel describes the dumping process to the helper.

use super::pattern::{REQUIRED, SPECIFIERS};
use crate::trigger::CoreDump;
use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The arguments of `tracectl notify --core`: the values of the specifiers of `core_pattern`, in order. The names among them are chosen by
/// the process, and may contain any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreArguments {
    dump: CoreDump,
    values: Vec<OsString>,
}

/// The arguments do not match those with which the helper is started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; expected are the values of `--core {}`, in this order; `tracectl install-core-handler` sets core_pattern so", SPECIFIERS[..REQUIRED].join(" "))]
pub struct CoreArgumentsError {
    problem: String,
}

impl CoreArguments {
    /// Checks the arguments: the values of `%P %u %g %e %h %s`, and as many further ones as the installed pattern has.
    ///
    /// # Errors
    ///
    /// If there are too few or too many arguments, or a numeric argument is not a number.
    pub fn parse(arguments: &[OsString]) -> Result<Self, CoreArgumentsError> {
        let count = arguments.len();
        if !(REQUIRED..=SPECIFIERS.len()).contains(&count) {
            return Err(CoreArgumentsError { problem: format!("{count} arguments follow `--core`") });
        }
        let number = |index: usize| {
            // `parse` alone would accept a sign.
            let value = arguments[index].to_str().filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
            value.and_then(|value| value.parse::<u32>().ok()).ok_or_else(|| CoreArgumentsError {
                problem: format!("`{}` is not the number for {}", arguments[index].display(), SPECIFIERS[index]),
            })
        };
        let (pid, uid, gid, signal) = (number(0)?, number(1)?, number(2)?, number(5)?);
        if pid == 0 {
            return Err(CoreArgumentsError { problem: "no process has the id 0".to_owned() });
        }
        let mut dump = CoreDump::new(pid, uid, gid, &arguments[3], &arguments[4]);
        dump.signal = Some(signal);
        let time = arguments.get(REQUIRED).and_then(|time| time.to_str()?.parse().ok());
        dump.time = Some(time.map_or_else(SystemTime::now, |time| UNIX_EPOCH + Duration::from_secs(time)));
        Ok(Self { dump, values: arguments.to_vec() })
    }

    /// Returns the core dump, with the signal. The time is the current time if the pattern does not contain it.
    pub const fn dump(&self) -> &CoreDump {
        &self.dump
    }

    /// The arguments, for another process that parses them.
    pub(super) fn values(&self) -> &[OsString] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<CoreArguments, CoreArgumentsError> {
        CoreArguments::parse(&line.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_arguments_of_the_kernel_are_parsed() {
        let arguments = parse(&["42", "1000", "100", "../my tool", "host", "11"]).expect("six arguments");
        let found = arguments.dump();
        assert_eq!((found.pid, found.uid, found.gid, found.signal), (42, 1000, 100, Some(11)));
        assert_eq!((found.executable.as_os_str(), found.host.as_os_str()), ("../my tool".as_ref(), "host".as_ref()));
        let more = parse(&["42", "1000", "100", "", "", "11", "1700000000", "7"]).expect("eight arguments");
        assert_eq!(more.dump().time, Some(UNIX_EPOCH + Duration::from_secs(1_700_000_000)));
        assert_eq!(more.values().len(), 8);
    }

    #[test]
    fn others_are_refused_with_what_is_expected() {
        let bad: [&[&str]; 7] = [
            &[],
            &["42", "1000", "100", "tool", "host"],
            &["tool", "1000", "100", "42", "host", "11"],
            &["42", "-1", "100", "tool", "host", "11"],
            &["42", "1000", "99999999999", "tool", "host", "11"],
            &["0", "1000", "100", "tool", "host", "11"],
            &["1"; 14],
        ];
        for line in bad {
            let error = parse(line).expect_err("it is not as it should be").to_string();
            assert!(error.contains("%P %u %g %e %h %s"), "{error}");
        }
    }
}
